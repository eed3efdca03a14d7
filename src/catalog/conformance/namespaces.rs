use super::*;

fn ns(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|p| p.to_string()).collect()
}

#[tokio::test]
async fn namespaces_nest_and_go_only_when_empty() {
    for kind in KINDS {
        let s = subject(kind).await;
        let c = &*s.catalog;
        c.create_namespace(&ns(&["a", "b"]), false).await.unwrap();
        assert_eq!(c.create_namespace(&ns(&["a", "b"]), false).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
        c.create_namespace(&ns(&["a", "b"]), true).await.unwrap();
        assert!(c.namespace_exists(&[]).await.unwrap());
        assert!(c.namespace_exists(&ns(&["a"])).await.unwrap(), "{kind}");
        assert!(!c.namespace_exists(&ns(&["b"])).await.unwrap(), "{kind}");
        assert_eq!(c.list_namespaces(None).await.unwrap(), [ns(&["a"]), ns(&["ns"])], "{kind}");
        assert_eq!(c.list_namespaces(Some(&ns(&["a"]))).await.unwrap(), [ns(&["a", "b"])], "{kind}");
        assert_eq!(c.list_namespaces(Some(&ns(&["x"]))).await.unwrap_err().kind(), ErrorKind::NotFound, "{kind}");
        let t = TableIdent::new(["a", "b"], "t");
        create(c, &t, &[]).await.unwrap();
        assert_eq!(c.list_tables(&ns(&["a", "b"])).await.unwrap(), std::slice::from_ref(&t), "{kind}");
        assert_eq!(c.list_tables(&ns(&["a"])).await.unwrap(), [], "{kind}");
        assert!(!c.namespace_exists(&ns(&["a", "b", "t"])).await.unwrap(), "{kind}: a table is no namespace");
        for not_empty in [ns(&["a"]), ns(&["a", "b"])] {
            let e = c.drop_namespace(&not_empty).await.unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidInput, "{kind}");
            assert!(e.message().contains("not empty"), "{kind}: {e}");
        }
        c.drop_table(&t).await.unwrap();
        c.drop_namespace(&ns(&["a", "b"])).await.unwrap();
        assert!(!c.namespace_exists(&ns(&["a", "b"])).await.unwrap(), "{kind}");
        assert_eq!(c.drop_namespace(&ns(&["a", "b"])).await.unwrap_err().kind(), ErrorKind::NotFound, "{kind}");
        assert_eq!(c.drop_namespace(&[]).await.unwrap_err().kind(), ErrorKind::InvalidInput, "{kind}");
        let lost = create(c, &TableIdent::new(["gone"], "t"), &[]).await.unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::NotFound, "{kind}: {lost}");
    }
}

#[tokio::test]
async fn names_cannot_lead_out_of_the_warehouse() {
    for kind in KINDS {
        let s = subject(kind).await;
        let c = &*s.catalog;
        for name in ["..", ".", "", "../x", "a/b", "/etc", "a\\b", "x\0", "a\nb"] {
            let made = c.create_table(&ident(name), metadata_at(&format!("{}/x", s.warehouse), &[])).await;
            assert_eq!(made.unwrap_err().kind(), ErrorKind::InvalidInput, "{kind}: {name:?}");
            assert!(c.default_location(&ident(name)).is_err(), "{kind}: {name:?}");
            assert!(c.create_namespace(&ns(&[name]), false).await.is_err(), "{kind}: {name:?}");
            assert!(c.create_namespace(&ns(&["a", name]), true).await.is_err(), "{kind}: {name:?}");
            assert!(c.load_table(&ident(name)).await.is_err(), "{kind}: {name:?}");
        }
        for name in ["ünï 日本", "a+b=c", "100%", "q\"'", "metadata", "data", "v1.metadata.json"] {
            let t = ident(name);
            let made = create(c, &t, &[]).await.unwrap();
            c.commit(setting(&t, &made, "k", "v")).await.unwrap();
            assert_eq!((s.reopen)().load_table(&t).await.unwrap().metadata.properties["k"], "v", "{kind}: {name}");
        }
        assert_eq!(c.list_tables(&ns(&["ns"])).await.unwrap().len(), 7, "{kind}");
        assert!(c.namespace_exists(&ns(&["ns"])).await.unwrap(), "{kind}");
    }
}

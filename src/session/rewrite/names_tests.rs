use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::*;
use crate::ErrorKind;

fn rules() -> NameRules {
    NameRules { normalize: true, default_catalog: "lake".into(), default_schema: "default".into() }
}

/// Tables: t and u (Iceberg), mixed (Iceberg, mixed case), own (Iceberg, owns `_file`), csv (not Iceberg).
fn tables() -> HashMap<ResolvedTableReference, TableColumns> {
    let table = |name: &str, columns: &[&str], iceberg: bool| {
        let hidden = HIDDEN_COLUMNS.iter().filter(|c| !columns.contains(c)).map(|c| (*c).to_owned()).collect();
        let hidden = iceberg.then_some(hidden);
        let reference = ResolvedTableReference { catalog: "lake".into(), schema: "default".into(), table: name.into() };
        (reference, TableColumns { columns: columns.iter().map(|c| (*c).to_owned()).collect(), hidden })
    };
    HashMap::from([
        table("t", &["id", "v"], true),
        table("u", &["id", "w"], true),
        table("mixed", &["EventId", "name", "Value"], true),
        table("twice", &["A", "a2", "aB", "Ab"], true),
        table("own", &["_file", "x"], true),
        table("csv", &["id", "z", "Z"], false),
    ])
}

fn rewrite(sql: &str) -> Result<String> {
    let mut statements = Parser::parse_sql(&GenericDialect {}, sql).unwrap();
    resolve_names(&mut statements, &rules(), &tables())?;
    Ok(statements[0].to_string())
}

fn same(sql: &str) {
    assert_eq!(rewrite(sql).unwrap(), Parser::parse_sql(&GenericDialect {}, sql).unwrap()[0].to_string());
}

const EXCLUDED: &str =
    "EXCLUDE (\"_file\", \"_pos\", \"_spec_id\", \"_partition\", \"_row_id\", \"_last_updated_sequence_number\")";

#[test]
fn hidden_columns_read_the_rows_table() {
    for (sql, expected) in [
        ("SELECT _file, id FROM t", "SELECT \"_file\", id FROM \"t$rows\" AS \"t\""),
        ("SELECT t._FILE FROM T", "SELECT \"t\".\"_file\" FROM \"t$rows\" AS \"t\""),
        ("SELECT a._pos FROM t AS a WHERE a.id = 1", "SELECT \"a\".\"_pos\" FROM \"t$rows\" AS a WHERE a.id = 1"),
        ("SELECT id FROM t ORDER BY _pos", "SELECT id FROM \"t$rows\" AS \"t\" ORDER BY \"_pos\""),
        ("SELECT count(*) FROM t GROUP BY _spec_id", "SELECT count(*) FROM \"t$rows\" AS \"t\" GROUP BY \"_spec_id\""),
        (
            "SELECT lake.default.t._pos, t.id FROM lake.default.t",
            "SELECT \"t\".\"_pos\", t.id FROM lake.default.\"t$rows\" AS \"t\"",
        ),
        ("SELECT _partition.m FROM t", "SELECT \"_partition\".m FROM \"t$rows\" AS \"t\""),
    ] {
        assert_eq!(rewrite(sql).unwrap(), expected, "{sql}");
    }
}

#[test]
fn stars_leave_hidden_columns_out() {
    assert_eq!(
        rewrite("SELECT *, _pos FROM t").unwrap(),
        format!("SELECT * {EXCLUDED}, \"_pos\" FROM \"t$rows\" AS \"t\"")
    );
    assert_eq!(
        rewrite("SELECT t.*, _pos FROM t").unwrap(),
        format!("SELECT \"t\".* {EXCLUDED}, \"_pos\" FROM \"t$rows\" AS \"t\"")
    );
    assert_eq!(
        rewrite("SELECT * FROM t JOIN csv c ON t.id = c.id WHERE t._pos > 1").unwrap(),
        format!(
            "SELECT \"t\".* {EXCLUDED}, \"c\".* FROM \"t$rows\" AS \"t\" JOIN csv c ON t.id = c.id WHERE \"t\".\"_pos\" > 1"
        )
    );
    assert_eq!(
        rewrite("SELECT * EXCLUDE (id) FROM t WHERE _pos = 1").unwrap(),
        "SELECT * EXCLUDE (id, \"_file\", \"_pos\", \"_spec_id\", \"_partition\", \"_row_id\", \"_last_updated_sequence_number\") FROM \"t$rows\" AS \"t\" WHERE \"_pos\" = 1"
    );
    let e = rewrite("SELECT * FROM t JOIN csv USING (id) WHERE t._pos > 1").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    let e = rewrite("SELECT t._pos FROM t NATURAL JOIN csv").unwrap_err();
    assert!(e.message().contains("NATURAL JOIN"), "{e}");
}

#[test]
fn a_table_that_owns_the_name_keeps_it() {
    same("SELECT _file, x FROM own");
    same("SELECT own._file FROM own");
    same("SELECT _file FROM own JOIN csv ON true");
    // its other hidden columns exist, and a star then spares its own
    assert_eq!(
        rewrite("SELECT *, _pos FROM own").unwrap(),
        "SELECT * EXCLUDE (\"_pos\", \"_spec_id\", \"_partition\", \"_row_id\", \"_last_updated_sequence_number\"), \"_pos\" FROM \"own$rows\" AS \"own\""
    );
    // the owner wins over another table's hidden column
    same("SELECT _file FROM own JOIN t ON own.x = t.id");
    assert_eq!(
        rewrite("SELECT t._file FROM own JOIN t ON own.x = t.id").unwrap(),
        "SELECT \"t\".\"_file\" FROM own JOIN \"t$rows\" AS \"t\" ON own.x = t.id"
    );
}

#[test]
fn scopes_are_innermost_first() {
    for (sql, expected) in [
        (
            "SELECT id FROM csv WHERE id IN (SELECT id FROM t WHERE _pos = 3)",
            "SELECT id FROM csv WHERE id IN (SELECT id FROM \"t$rows\" AS \"t\" WHERE \"_pos\" = 3)",
        ),
        (
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM csv WHERE csv.id = t._pos)",
            "SELECT id FROM \"t$rows\" AS \"t\" WHERE EXISTS (SELECT 1 FROM csv WHERE csv.id = \"t\".\"_pos\")",
        ),
        (
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE _pos = 1)",
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM \"u$rows\" AS \"u\" WHERE \"_pos\" = 1)",
        ),
        (
            "SELECT _pos FROM t UNION ALL SELECT id FROM t",
            "SELECT \"_pos\" FROM \"t$rows\" AS \"t\" UNION ALL SELECT id FROM t",
        ),
        (
            "SELECT a FROM (SELECT _file AS a FROM t) x JOIN (SELECT id FROM u) y ON true",
            "SELECT a FROM (SELECT \"_file\" AS a FROM \"t$rows\" AS \"t\") AS x JOIN (SELECT id FROM u) AS y ON true",
        ),
    ] {
        assert_eq!(
            rewrite(sql).unwrap().replace(" AS x", " x").replace(" AS y", " y"),
            expected.replace(" AS x", " x").replace(" AS y", " y"),
            "{sql}"
        );
    }
}

#[test]
fn common_table_expressions_hide_tables() {
    same("WITH t AS (SELECT 1 AS _pos) SELECT _pos FROM t");
    same("WITH c AS (SELECT * FROM csv) SELECT _pos FROM c, t");
    assert_eq!(
        rewrite("WITH c AS (SELECT id FROM csv) SELECT _pos FROM c, t").unwrap(),
        "WITH c AS (SELECT id FROM csv) SELECT \"_pos\" FROM c, \"t$rows\" AS \"t\""
    );
    assert_eq!(
        rewrite("WITH c AS (SELECT _file AS f FROM t) SELECT * FROM c").unwrap(),
        "WITH c AS (SELECT \"_file\" AS f FROM \"t$rows\" AS \"t\") SELECT * FROM c"
    );
}

#[test]
fn case_falls_back_to_the_one_candidate() {
    for (sql, expected) in [
        ("SELECT EventId, NAME FROM mixed", "SELECT \"EventId\", NAME FROM mixed"),
        ("SELECT m.eventid FROM mixed m", "SELECT \"m\".\"EventId\" FROM mixed m"),
        (
            "SELECT eventid AS x FROM mixed ORDER BY VALUE, x",
            "SELECT \"EventId\" AS x FROM mixed ORDER BY \"Value\", x",
        ),
        ("INSERT INTO mixed (eventid, name) SELECT 1, 2", "INSERT INTO mixed (\"EventId\", name) SELECT 1, 2"),
        ("UPDATE mixed SET value = 1 WHERE eventid = 2", "UPDATE mixed SET \"Value\" = 1 WHERE \"EventId\" = 2"),
    ] {
        assert_eq!(rewrite(sql).unwrap().replace(" AS m", " m"), expected, "{sql}");
    }
    // quoted names mean what they say, exact matches further out win, aliases win, other tables do not fall back
    same("SELECT \"eventid\" FROM mixed");
    same("SELECT Z FROM csv");
    same("SELECT id FROM csv WHERE EXISTS (SELECT 1 FROM u WHERE w = z)");
    same("SELECT 1 AS value FROM mixed ORDER BY value");
    let e = rewrite("SELECT ab FROM twice").unwrap_err();
    assert!(e.message().contains("\"aB\" or \"Ab\""), "{e}");
    assert_eq!(rewrite("SELECT a FROM twice").unwrap(), "SELECT \"A\" FROM twice");
}

#[test]
fn hidden_columns_of_an_update_or_merge_read_the_rows_table() {
    assert_eq!(
        rewrite("UPDATE t SET v = 1 WHERE _pos = 1").unwrap(),
        "UPDATE \"t$rows\" AS \"t\" SET v = 1 WHERE \"_pos\" = 1"
    );
    assert_eq!(
        rewrite("MERGE INTO t USING u ON t.id = u.id WHEN MATCHED AND u._pos = 1 THEN DELETE").unwrap(),
        "MERGE INTO t USING \"u$rows\" AS \"u\" ON t.id = u.id WHEN MATCHED AND \"u\".\"_pos\" = 1 THEN DELETE"
    );
    assert_eq!(
        rewrite("MERGE INTO mixed USING t ON eventid = id WHEN MATCHED THEN UPDATE SET value = t.v").unwrap(),
        "MERGE INTO mixed USING t ON \"EventId\" = id WHEN MATCHED THEN UPDATE SET \"Value\" = t.v"
    );
}

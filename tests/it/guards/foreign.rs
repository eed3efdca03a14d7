//! DELETE and UPDATE on tables that are not ours.

use std::sync::Arc;

use calve::spec::PrimitiveType::{self, Long};
use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::datasource::MemTable;

use super::{DOORS, Door, Spec, World};

const T: Spec<'_> = ("t", &[("id", PrimitiveType::Long), ("k", Long)], "(1, 1), (2, 2)");

async fn world(door: Door) -> World {
    let world = World::new(door, &[T]).await;
    let ids = Int64Array::from(vec![Some(1), Some(2), Some(3), None]);
    let batch = RecordBatch::try_from_iter_with_nullable([("id", Arc::new(ids) as _, true)]).unwrap();
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    world.ctx().register_table("mem.s.m", Arc::new(table)).unwrap();
    world
}

const ALL: [&str; 4] = ["", "1", "2", "3"];

#[tokio::test(flavor = "multi_thread")]
async fn filters_that_say_everything_are_left_to_datafusion() {
    for door in DOORS {
        let world = world(door).await;
        assert_eq!(world.rows("DELETE FROM mem.s.m WHERE id > 1 AND id < 3").await, ["1"], "{door:?}");
        assert_eq!(world.rows("SELECT id FROM mem.s.m").await, ["", "1", "3"], "{door:?}");
        assert_eq!(world.rows("DELETE FROM mem.s.m WHERE false").await, ["0"], "{door:?}");
        assert_eq!(world.rows("DELETE FROM mem.s.m WHERE id = 1 AND id = 3").await, ["0"], "{door:?}");
        assert_eq!(world.rows("SELECT id FROM mem.s.m").await, ["", "1", "3"], "{door:?}");
        assert_eq!(world.rows("UPDATE mem.s.m SET id = 7 WHERE id = 3").await, ["1"], "{door:?}");
        assert_eq!(world.rows("UPDATE mem.s.m SET id = 7 WHERE false").await, ["0"], "{door:?}");
        assert_eq!(world.rows("SELECT id FROM mem.s.m").await, ["", "1", "7"], "{door:?}");
        assert_eq!(world.rows("DELETE FROM mem.s.m").await, ["3"], "{door:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_filters_would_lose_is_refused() {
    for door in DOORS {
        let world = world(door).await;
        for sql in [
            "DELETE FROM mem.s.m WHERE id IN (SELECT id FROM t)",
            "DELETE FROM mem.s.m WHERE id NOT IN (SELECT id FROM t)",
            "DELETE FROM mem.s.m WHERE EXISTS (SELECT 1 FROM t WHERE t.id = m.id)",
            "DELETE FROM mem.s.m WHERE id > (SELECT max(id) FROM t)",
            "DELETE FROM mem.s.m LIMIT 1",
            "UPDATE mem.s.m SET id = 0 WHERE id IN (SELECT id FROM t)",
            "UPDATE mem.s.m SET id = (SELECT max(k) FROM t)",
        ] {
            world.refused(sql, "not an Iceberg table").await;
            world.refused(&format!("EXPLAIN {sql}"), "not an Iceberg table").await;
        }
        assert_eq!(world.rows("SELECT id FROM mem.s.m").await, ALL, "{door:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_changes_nothing() {
    for door in DOORS {
        let world = world(door).await;
        for sql in [
            "DELETE FROM mem.s.m WHERE id > 1",
            "DELETE FROM mem.s.m",
            "UPDATE mem.s.m SET id = 0",
            "TRUNCATE TABLE mem.s.m",
        ] {
            let plan = world.rows(&format!("EXPLAIN {sql}")).await.join("\n");
            assert!(plan.contains("ForeignChangeExec"), "{plan}");
            assert_eq!(world.rows("SELECT id FROM mem.s.m").await, ALL, "{door:?} {sql}");
        }
        world.rows("EXPLAIN ANALYZE DELETE FROM mem.s.m WHERE id > 1").await;
        assert_eq!(world.rows("SELECT id FROM mem.s.m").await, ["", "1"], "{door:?}");
    }
}

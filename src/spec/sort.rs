//! Sort orders.
//!
//! Implements the spec section "Sorting".

use serde_json::{Value, json};

use super::json::Node;
use super::transform::Transform;
use crate::Result;

/// Ascending or descending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SortDirection {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// Where nulls go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NullOrder {
    /// Nulls before values.
    First,
    /// Nulls after values.
    Last,
}

/// One key of a sort order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SortField {
    /// Transform applied before comparing.
    pub transform: Transform,
    /// Field id of the source column.
    pub source_id: i32,
    /// Direction.
    pub direction: SortDirection,
    /// Null placement.
    pub null_order: NullOrder,
}

/// A sort order; id 0 is always the unsorted order with no fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SortOrder {
    /// Id among the table's sort orders.
    pub order_id: i32,
    /// Keys, most significant first.
    pub fields: Vec<SortField>,
}

impl SortOrder {
    /// Order 0: no order.
    pub fn unsorted() -> Self {
        Self { order_id: 0, fields: Vec::new() }
    }

    /// Whether this asks for no order.
    pub fn is_unsorted(&self) -> bool {
        self.fields.is_empty()
    }

    /// Reads a sort order as table metadata and the REST protocol hold it. `DataInvalid` names the field.
    pub fn from_json(value: &Value) -> Result<Self> {
        Self::from_node(&Node::root("sort order", value))
    }

    pub(crate) fn from_node(node: &Node<'_, '_>) -> Result<Self> {
        let fields = node.req("fields")?;
        let fields = fields.items()?.map(|f| read_field(&f)).collect::<Result<_>>()?;
        Ok(Self { order_id: node.opt_i32("order-id")?.unwrap_or(0), fields })
    }

    /// The sort order as JSON.
    pub fn to_json(&self) -> Value {
        let field = |f: &SortField| {
            json!({
                "transform": f.transform.to_string(),
                "source-id": f.source_id,
                "direction": match f.direction { SortDirection::Ascending => "asc", SortDirection::Descending => "desc" },
                "null-order": match f.null_order { NullOrder::First => "nulls-first", NullOrder::Last => "nulls-last" },
            })
        };
        json!({"order-id": self.order_id, "fields": self.fields.iter().map(field).collect::<Vec<_>>()})
    }
}

fn read_field(node: &Node<'_, '_>) -> Result<SortField> {
    let direction = node.req("direction")?;
    let null_order = node.req("null-order")?;
    Ok(SortField {
        transform: super::partition::read_transform(node)?,
        source_id: super::partition::read_source_id(node)?,
        direction: match direction.str()?.to_ascii_lowercase().as_str() {
            "asc" => SortDirection::Ascending,
            "desc" => SortDirection::Descending,
            other => return Err(direction.error(format_args!("expected asc or desc, found {other:?}"))),
        },
        null_order: match null_order.str()?.to_ascii_lowercase().as_str() {
            "nulls-first" => NullOrder::First,
            "nulls-last" => NullOrder::Last,
            other => return Err(null_order.error(format_args!("expected nulls-first or nulls-last, found {other:?}"))),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive() {
        let value = json!({"order-id": 2, "fields": [
            {"transform": "bucket[4]", "source-id": 1, "direction": "desc", "null-order": "nulls-last"},
            {"transform": "identity", "source-id": 2, "direction": "asc", "null-order": "nulls-first"}]});
        let order = SortOrder::from_json(&value).unwrap();
        assert_eq!(order.to_json(), value);
        assert_eq!(order.fields[0].direction, SortDirection::Descending);
        assert!(!order.is_unsorted() && SortOrder::unsorted().is_unsorted());
    }

    #[test]
    fn bad_orders_name_the_field() {
        let value = json!({"order-id": 1, "fields": [
            {"transform": "identity", "source-id": 2, "direction": "up", "null-order": "nulls-first"}]});
        assert!(SortOrder::from_json(&value).unwrap_err().message().contains("fields[0].direction"));
    }
}

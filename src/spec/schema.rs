//! Table schemas.
//!
//! Implements the spec section "Schemas". Invariant: field ids are unique within a schema; columns are resolved by id, and
//! by name only where a user typed one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::table_metadata::FormatVersion;
use super::types::{ListType, MapType, NestedField, PrimitiveType, StructType, Type};
use crate::{Error, Result};

/// One version of a table's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Id among the table's schemas; 0 in a v1 table that gives none.
    pub schema_id: i32,
    /// The columns, in order.
    pub fields: StructType,
    /// Field ids of the row identifier, in the order of the metadata; informational.
    pub identifier_field_ids: Vec<i32>,
}

impl Schema {
    /// A schema of these columns without identifier fields. Not validated; see [`Schema::validate`].
    pub fn new(schema_id: i32, fields: Vec<NestedField>) -> Self {
        let fields = StructType { fields: fields.into_iter().map(Arc::new).collect() };
        Self { schema_id, fields, identifier_field_ids: Vec::new() }
    }

    /// The field with this id, at any depth.
    pub fn field_by_id(&self, id: i32) -> Option<&Arc<NestedField>> {
        find(&self.fields.fields, id)
    }

    /// The field with this dotted name, at any depth; the parts of a list and a map are `element`, `key` and `value`.
    /// The exact spelling wins; failing that, the one field that differs only in case.
    pub fn field_by_name(&self, dotted: &str) -> Option<&Arc<NestedField>> {
        let mut exact = Vec::new();
        find_by_name(&self.fields.fields, dotted, &|a, b| a == b, &mut exact);
        match exact.first() {
            Some(field) => Some(field),
            None => self.field_by_name_ci(dotted),
        }
    }

    /// The one field whose dotted name equals this in any case; `None` also when there are several.
    pub fn field_by_name_ci(&self, dotted: &str) -> Option<&Arc<NestedField>> {
        let mut found = Vec::new();
        let lower = dotted.to_lowercase();
        find_by_name(&self.fields.fields, &lower, &|name, part| name.to_lowercase() == part, &mut found);
        match found.as_slice() {
            [field] => Some(field),
            _ => None,
        }
    }

    /// Dotted name of a field.
    pub fn name_of(&self, id: i32) -> Option<String> {
        let mut fields = Vec::new();
        path(&self.fields.fields, id, &mut fields);
        let names: Vec<&str> = fields.iter().rev().map(|f| f.name.as_str()).collect();
        (!names.is_empty()).then(|| names.join("."))
    }

    /// Index among the columns of the column with this id.
    pub fn top_level_index_of(&self, id: i32) -> Option<usize> {
        self.fields.fields.iter().position(|f| f.id == id)
    }

    /// Field ids from the column down to this field, which is last.
    pub fn path_to(&self, id: i32) -> Option<Vec<i32>> {
        let mut fields = Vec::new();
        path(&self.fields.fields, id, &mut fields);
        (!fields.is_empty()).then(|| fields.iter().rev().map(|f| f.id).collect())
    }

    /// Whether the field lies inside a list or a map, so that one row may hold many of its values.
    pub fn is_under_list_or_map(&self, id: i32) -> bool {
        let mut fields = Vec::new();
        path(&self.fields.fields, id, &mut fields);
        fields.iter().skip(1).any(|f| matches!(f.field_type, Type::List(_) | Type::Map(_)))
    }

    /// Greatest field id in use, 0 for no fields.
    pub fn highest_field_id(&self) -> i32 {
        let mut highest = 0;
        self.visit(&mut |field| highest = highest.max(field.id));
        highest
    }

    /// Calls `f` for every field at any depth, parents before children.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Arc<NestedField>)) {
        visit(&self.fields.fields, f);
    }

    /// Whether both have the same columns and identifier, whatever their ids among the schemas.
    pub fn same_columns(&self, other: &Self) -> bool {
        let ids = |s: &Self| s.identifier_field_ids.iter().copied().collect::<HashSet<_>>();
        self.fields == other.fields && ids(self) == ids(other)
    }

    /// Checks what every reader relies on: ids unique and not negative, names unique within a struct. `DataInvalid`
    /// names the field.
    pub fn validate(&self) -> Result<()> {
        let invalid = |message: String| Error::data_invalid(format!("schema {}: {message}", self.schema_id));
        let mut ids: HashMap<i32, &str> = HashMap::new();
        let mut problem = None;
        self.visit(&mut |field| {
            if field.id < 0 {
                problem.get_or_insert(format!("field {}: id {} is negative", field.name, field.id));
            }
            if let Some(other) = ids.insert(field.id, &field.name) {
                problem.get_or_insert(format!("fields {other} and {} both have id {}", field.name, field.id));
            }
            if let Type::Struct(inner) = &field.field_type
                && let Some(name) = duplicate_name(inner)
            {
                problem.get_or_insert(format!("field {}: two fields are named {name}", field.name));
            }
        });
        if let Some(name) = duplicate_name(&self.fields) {
            problem.get_or_insert(format!("two columns are named {name}"));
        }
        problem.map_or(Ok(()), |p| Err(invalid(p)))
    }

    /// Checks that a table of this version may have this schema: types and defaults of a later version, and identifier
    /// fields that cannot identify a row, are `InvalidInput`.
    pub fn check_compatible(&self, version: FormatVersion) -> Result<()> {
        let mut problem = None;
        self.visit(&mut |field| {
            if version < FormatVersion::V3 {
                if is_v3_type(&field.field_type) {
                    problem.get_or_insert(format!(
                        "column {}: type {} needs format version 3",
                        field.name, field.field_type
                    ));
                } else if field.initial_default.is_some() {
                    problem.get_or_insert(format!("column {}: an initial default needs format version 3", field.name));
                }
            }
            if field.name.is_empty() {
                problem.get_or_insert(format!("the field with id {} has an empty name", field.id));
            }
        });
        for id in &self.identifier_field_ids {
            let fault = match self.field_by_id(*id) {
                None => Some("does not exist"),
                Some(f) if !f.required => Some("is not required"),
                Some(f) => match f.field_type.as_primitive() {
                    None => Some("is not of a primitive type"),
                    Some(PrimitiveType::Float | PrimitiveType::Double) => Some("is a floating point number"),
                    Some(_) if self.is_under_list_or_map(*id) => Some("lies inside a list or map"),
                    Some(_) => None,
                },
            };
            if let Some(fault) = fault {
                problem.get_or_insert(format!("the identifier field with id {id} {fault}"));
            }
        }
        problem.map_or(Ok(()), |p| Err(Error::invalid_input(p)))
    }

    /// The same columns with fresh ids from 1, fields of one struct before those inside them (as every engine gives
    /// ids to a new table), and the map from old ids to new.
    pub(crate) fn with_fresh_ids(&self) -> (Self, HashMap<i32, i32>) {
        let mut fresh = FreshIds { last: 0, map: HashMap::new() };
        let fields = fresh.fields(&self.fields);
        let identifier_field_ids =
            self.identifier_field_ids.iter().filter_map(|id| fresh.map.get(id).copied()).collect();
        (Self { schema_id: 0, fields, identifier_field_ids }, fresh.map)
    }
}

impl Type {
    /// The same type with fresh ids for all fields in it, counted up from `last`, which is the last one given out.
    pub(crate) fn with_fresh_ids(&self, last: &mut i32) -> Self {
        let mut fresh = FreshIds { last: *last, map: HashMap::new() };
        let renumbered = fresh.inner(self);
        *last = fresh.last;
        renumbered
    }
}

fn is_v3_type(t: &Type) -> bool {
    use PrimitiveType::*;
    match t {
        Type::Variant => true,
        Type::Primitive(p) => matches!(p, TimestampNs | TimestamptzNs | Unknown | Geometry(_) | Geography(..)),
        _ => false,
    }
}

fn duplicate_name(fields: &StructType) -> Option<&str> {
    let mut names = HashSet::new();
    fields.fields.iter().map(|f| f.name.as_str()).find(|name| !names.insert(*name))
}

/// The fields directly inside a type, in two parts because a map keeps its two apart.
fn children(t: &Type) -> [&[Arc<NestedField>]; 2] {
    match t {
        Type::Struct(fields) => [&fields.fields, &[]],
        Type::List(list) => [std::slice::from_ref(&list.element), &[]],
        Type::Map(map) => [std::slice::from_ref(&map.key), std::slice::from_ref(&map.value)],
        Type::Primitive(_) | Type::Variant => [&[], &[]],
    }
}

fn find(fields: &[Arc<NestedField>], id: i32) -> Option<&Arc<NestedField>> {
    let here = fields.iter().find(|f| f.id == id);
    here.or_else(|| fields.iter().flat_map(|f| children(&f.field_type)).find_map(|inner| find(inner, id)))
}

/// Fields from the one with `id` up to its column; empty when there is none.
fn path<'a>(fields: &'a [Arc<NestedField>], id: i32, out: &mut Vec<&'a Arc<NestedField>>) -> bool {
    for field in fields {
        if field.id == id || children(&field.field_type).into_iter().any(|inner| path(inner, id, out)) {
            out.push(field);
            return true;
        }
    }
    false
}

/// Collects the fields whose dotted name is `dotted`. Names may themselves hold dots, so every split is tried.
fn find_by_name<'a>(
    fields: &'a [Arc<NestedField>],
    dotted: &str,
    same: &impl Fn(&str, &str) -> bool,
    out: &mut Vec<&'a Arc<NestedField>>,
) {
    for field in fields {
        if same(&field.name, dotted) {
            out.push(field);
        }
        if matches!(field.field_type, Type::Primitive(_) | Type::Variant) {
            continue;
        }
        for (dot, _) in dotted.match_indices('.') {
            if same(&field.name, &dotted[..dot]) {
                for inner in children(&field.field_type) {
                    find_by_name(inner, &dotted[dot + 1..], same, out);
                }
            }
        }
    }
}

fn visit<'a>(fields: &'a [Arc<NestedField>], f: &mut impl FnMut(&'a Arc<NestedField>)) {
    for field in fields {
        f(field);
        for inner in children(&field.field_type) {
            visit(inner, f);
        }
    }
}

struct FreshIds {
    last: i32,
    map: HashMap<i32, i32>,
}

impl FreshIds {
    fn next(&mut self, old: i32) -> i32 {
        self.last = self.last.saturating_add(1);
        self.map.insert(old, self.last);
        self.last
    }

    fn fields(&mut self, fields: &StructType) -> StructType {
        let ids: Vec<i32> = fields.fields.iter().map(|f| self.next(f.id)).collect();
        let fields = fields.fields.iter().zip(ids);
        StructType { fields: fields.map(|(f, id)| Arc::new(self.field(f, id))).collect() }
    }

    fn field(&mut self, field: &NestedField, id: i32) -> NestedField {
        NestedField { id, field_type: self.inner(&field.field_type), ..field.clone() }
    }

    fn inner(&mut self, t: &Type) -> Type {
        match t {
            Type::Primitive(_) | Type::Variant => t.clone(),
            Type::Struct(fields) => Type::Struct(self.fields(fields)),
            Type::List(list) => {
                let id = self.next(list.element.id);
                Type::List(Box::new(ListType { element: Arc::new(self.field(&list.element, id)) }))
            }
            Type::Map(map) => {
                let (key_id, value_id) = (self.next(map.key.id), self.next(map.value.id));
                let key = Arc::new(self.field(&map.key, key_id));
                let value = Arc::new(self.field(&map.value, value_id));
                Type::Map(Box::new(MapType { key, value }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn leaf(id: i32, name: &str) -> NestedField {
        NestedField::new(id, name, false, PrimitiveType::Int)
    }

    fn structure(fields: Vec<NestedField>) -> Type {
        Type::Struct(StructType { fields: fields.into_iter().map(Arc::new).collect() })
    }

    /// `id, s.{x, Y}, l: list<struct<z>>, m: map<int, int>, "a.b"`
    fn nested() -> Schema {
        let element = NestedField::new(7, "element", false, structure(vec![leaf(8, "z")]));
        let map = MapType {
            key: Arc::new(NestedField::new(9, "key", true, PrimitiveType::Int)),
            value: Arc::new(leaf(10, "value")),
        };
        Schema::new(
            3,
            vec![
                leaf(1, "id"),
                NestedField::new(2, "s", false, structure(vec![leaf(5, "x"), leaf(6, "Y")])),
                NestedField::new(3, "l", false, Type::List(Box::new(ListType { element: Arc::new(element) }))),
                NestedField::new(4, "m", false, Type::Map(Box::new(map))),
                leaf(11, "a.b"),
            ],
        )
    }

    #[test]
    fn finds_fields_by_id_and_name_at_any_depth() {
        let s = nested();
        s.validate().unwrap();
        for (id, name) in [
            (1, "id"),
            (5, "s.x"),
            (6, "s.Y"),
            (7, "l.element"),
            (8, "l.element.z"),
            (9, "m.key"),
            (10, "m.value"),
            (11, "a.b"),
        ] {
            assert_eq!(s.field_by_id(id).unwrap().id, id);
            assert_eq!(s.field_by_name(name).unwrap().id, id, "{name}");
            assert_eq!(s.name_of(id).unwrap(), name);
        }
        assert_eq!(s.field_by_name("S.y").unwrap().id, 6);
        assert!(s.field_by_name("s.").is_none() && s.field_by_name("").is_none() && s.field_by_name("x").is_none());
        assert!(s.field_by_id(12).is_none() && s.name_of(12).is_none() && s.path_to(12).is_none());
        assert_eq!(s.path_to(8).unwrap(), [3, 7, 8]);
        assert_eq!(s.top_level_index_of(4), Some(3));
        assert_eq!(s.top_level_index_of(5), None);
        assert_eq!(s.highest_field_id(), 11);
        assert!(s.is_under_list_or_map(8) && s.is_under_list_or_map(7) && s.is_under_list_or_map(10));
        assert!(!s.is_under_list_or_map(3) && !s.is_under_list_or_map(5) && !s.is_under_list_or_map(99));
    }

    #[test]
    fn case_insensitive_names_must_be_unique() {
        let s = Schema::new(0, vec![leaf(1, "A"), leaf(2, "a")]);
        assert_eq!(s.field_by_name("a").unwrap().id, 2);
        assert_eq!(s.field_by_name("A").unwrap().id, 1);
        assert!(s.field_by_name_ci("a").is_none());
    }

    #[test]
    fn duplicates_are_data_invalid() {
        let twice = Schema::new(0, vec![leaf(1, "a"), NestedField::new(2, "s", false, structure(vec![leaf(1, "x")]))]);
        let e = twice.validate().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::DataInvalid);
        assert!(e.message().contains("fields a and x both have id 1"), "{e}");
        assert!(Schema::new(0, vec![leaf(1, "a"), leaf(2, "a")]).validate().is_err());
        assert!(Schema::new(0, vec![leaf(-1, "a")]).validate().is_err());
    }

    #[test]
    fn fresh_ids_go_level_by_level() {
        let (fresh, map) = nested().with_fresh_ids();
        let ids: Vec<i32> = fresh.fields.fields.iter().map(|f| f.id).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5]);
        assert_eq!(fresh.field_by_name("s.x").unwrap().id, 6);
        assert_eq!(fresh.field_by_name("l.element").unwrap().id, 8);
        assert_eq!(fresh.field_by_name("m.value").unwrap().id, 11);
        assert_eq!(map[&11], 5);
    }

    #[test]
    fn later_types_need_version_3() {
        let s = Schema::new(0, vec![NestedField::new(1, "t", false, PrimitiveType::TimestampNs)]);
        assert_eq!(s.check_compatible(FormatVersion::V2).unwrap_err().kind(), ErrorKind::InvalidInput);
        s.check_compatible(FormatVersion::V3).unwrap();
        let mut s = Schema::new(0, vec![leaf(1, "a")]);
        s.identifier_field_ids = vec![1];
        assert!(s.check_compatible(FormatVersion::V2).unwrap_err().message().contains("not required"));
    }
}

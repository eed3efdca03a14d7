//! Reading JSON values with the place of every error.
//!
//! A [`Node`] is a JSON value that knows the way to it, so that an error reads `table metadata: schemas[0].fields[2].id:
//! not a 32-bit integer`. The way is a chain on the stack: nothing is allocated until an error is made.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::{Error, Result};

/// A JSON value and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Node<'v, 'p> {
    value: &'v Value,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root(&'p str),
    Key(&'p dyn Parent, &'p str),
    Index(&'p dyn Parent, usize),
}

/// The part of a node that its children need; hides the lifetime of the value.
trait Parent {
    fn write_path(&self, out: &mut String);
    fn subject(&self) -> &str;
}

impl Parent for Node<'_, '_> {
    fn write_path(&self, out: &mut String) {
        match self.step {
            Step::Root(_) => {}
            Step::Key(parent, key) => {
                parent.write_path(out);
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(key);
            }
            Step::Index(parent, index) => {
                parent.write_path(out);
                let _ = write!(out, "[{index}]");
            }
        }
    }

    fn subject(&self) -> &str {
        match self.step {
            Step::Root(subject) => subject,
            Step::Key(parent, _) | Step::Index(parent, _) => parent.subject(),
        }
    }
}

impl<'v, 'p> Node<'v, 'p> {
    /// The document itself; `subject` is what errors call it.
    pub(crate) fn root(subject: &'p str, value: &'v Value) -> Self {
        Self { value, step: Step::Root(subject) }
    }

    /// The value.
    pub(crate) fn value(&self) -> &'v Value {
        self.value
    }

    /// A `DataInvalid` error about this place.
    pub(crate) fn error(&self, message: impl std::fmt::Display) -> Error {
        let mut path = String::new();
        self.write_path(&mut path);
        let subject = self.subject();
        if path.is_empty() {
            Error::data_invalid(format!("{subject}: {message}"))
        } else {
            Error::data_invalid(format!("{subject}: field {path}: {message}"))
        }
    }

    fn wrong(&self, wanted: &str) -> Error {
        let got = match self.value {
            Value::Null => "null".to_string(),
            Value::Bool(v) => v.to_string(),
            Value::Number(v) => v.to_string(),
            Value::String(v) => format!("{:?}", v.chars().take(60).collect::<String>()),
            Value::Array(_) => "an array".to_string(),
            Value::Object(_) => "an object".to_string(),
        };
        self.error(format_args!("expected {wanted}, found {got}"))
    }

    /// The members of an object.
    pub(crate) fn object(&self) -> Result<&'v Map<String, Value>> {
        self.value.as_object().ok_or_else(|| self.wrong("an object"))
    }

    /// The member `key`; `None` when it is missing or null.
    pub(crate) fn opt<'s>(&'s self, key: &'s str) -> Result<Option<Node<'v, 's>>> {
        Ok(match self.object()?.get(key) {
            None | Some(Value::Null) => None,
            Some(value) => Some(Node { value, step: Step::Key(self, key) }),
        })
    }

    /// The member `key`; an error when it is missing or null.
    pub(crate) fn req<'s>(&'s self, key: &'s str) -> Result<Node<'v, 's>> {
        match self.opt(key)? {
            Some(node) => Ok(node),
            None => Err(Node { value: self.value, step: Step::Key(self, key) }.error("required field is missing")),
        }
    }

    /// Elements of an array.
    pub(crate) fn items<'s>(&'s self) -> Result<impl ExactSizeIterator<Item = Node<'v, 's>>> {
        let items = self.value.as_array().ok_or_else(|| self.wrong("an array"))?;
        Ok(items.iter().enumerate().map(move |(i, value)| Node { value, step: Step::Index(self, i) }))
    }

    /// A string.
    pub(crate) fn str(&self) -> Result<&'v str> {
        self.value.as_str().ok_or_else(|| self.wrong("a string"))
    }

    /// true or false.
    pub(crate) fn bool(&self) -> Result<bool> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// A 64-bit signed integer.
    pub(crate) fn i64(&self) -> Result<i64> {
        self.value.as_i64().ok_or_else(|| self.wrong("a 64-bit integer"))
    }

    /// A 32-bit signed integer.
    pub(crate) fn i32(&self) -> Result<i32> {
        self.value.as_i64().and_then(|v| i32::try_from(v).ok()).ok_or_else(|| self.wrong("a 32-bit integer"))
    }

    /// A non-negative integer within 63 bits.
    pub(crate) fn unsigned(&self) -> Result<u64> {
        self.value.as_i64().and_then(|v| u64::try_from(v).ok()).ok_or_else(|| self.wrong("a non-negative integer"))
    }

    /// A 64-bit integer member, `None` when missing or null.
    pub(crate) fn opt_i64(&self, key: &str) -> Result<Option<i64>> {
        self.opt(key)?.map(|n| n.i64()).transpose()
    }

    /// A 32-bit integer member, `None` when missing or null.
    pub(crate) fn opt_i32(&self, key: &str) -> Result<Option<i32>> {
        self.opt(key)?.map(|n| n.i32()).transpose()
    }

    /// A non-negative integer member, `None` when missing or null.
    pub(crate) fn opt_unsigned(&self, key: &str) -> Result<Option<u64>> {
        self.opt(key)?.map(|n| n.unsigned()).transpose()
    }

    /// A string member, `None` when missing or null.
    pub(crate) fn opt_string(&self, key: &str) -> Result<Option<String>> {
        self.opt(key)?.map(|n| n.str().map(str::to_string)).transpose()
    }

    /// 32-bit integers of an array member, empty when missing or null.
    pub(crate) fn i32_list(&self, key: &str) -> Result<Vec<i32>> {
        match self.opt(key)? {
            None => Ok(Vec::new()),
            Some(node) => node.items()?.map(|n| n.i32()).collect(),
        }
    }

    /// 64-bit integers of an array.
    pub(crate) fn i64s(&self) -> Result<Vec<i64>> {
        self.items()?.map(|n| n.i64()).collect()
    }

    /// Strings of an array.
    pub(crate) fn strings(&self) -> Result<Vec<String>> {
        self.items()?.map(|n| n.str().map(str::to_string)).collect()
    }

    /// Values of an array member, verbatim; empty when missing or null.
    pub(crate) fn verbatim_list(&self, key: &str) -> Result<Vec<Value>> {
        match self.opt(key)? {
            None => Ok(Vec::new()),
            Some(node) => Ok(node.items()?.map(|n| n.value.clone()).collect()),
        }
    }

    /// A map of strings. Numbers and booleans read as their text and nulls are left out, as some writers put them.
    pub(crate) fn string_map(&self) -> Result<BTreeMap<String, String>> {
        let mut map = BTreeMap::new();
        for (key, value) in self.object()? {
            let node = Node { value, step: Step::Key(self, key) };
            let text = match value {
                Value::Null => continue,
                Value::String(v) => v.clone(),
                Value::Number(v) => v.to_string(),
                Value::Bool(v) => v.to_string(),
                _ => return Err(node.wrong("a string")),
            };
            map.insert(key.clone(), text);
        }
        Ok(map)
    }

    /// Members of this object that `known` does not name.
    pub(crate) fn members_except(&self, known: &[&str]) -> Result<Map<String, Value>> {
        let members = self.object()?.iter().filter(|(k, _)| !known.contains(&k.as_str()));
        Ok(members.map(|(k, v)| (k.clone(), v.clone())).collect())
    }
}

/// An object of the given members, those without a value left out.
pub(crate) fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Map<String, Value> {
    members.into_iter().filter_map(|(k, v)| v.map(|v| (k.to_string(), v))).collect()
}

/// A map of strings as JSON.
pub(crate) fn from_string_map(map: &BTreeMap<String, String>) -> Value {
    Value::Object(map.iter().map(|(k, v)| (k.clone(), Value::String(v.clone()))).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ErrorKind;

    #[test]
    fn errors_name_the_place() {
        let value = json!({"a": [{"b": "x"}, {"b": 7}], "n": null});
        let root = Node::root("thing", &value);
        let a = root.req("a").unwrap();
        let second = a.items().unwrap().nth(1).unwrap();
        let e = second.req("b").unwrap().str().unwrap_err();
        assert_eq!(e.to_string(), "invalid data: thing: field a[1].b: expected a string, found 7");
        assert_eq!(root.req("n").map(|_| ()).unwrap_err().message(), "thing: field n: required field is missing");
        assert_eq!(root.i64().unwrap_err().kind(), ErrorKind::DataInvalid);
    }

    #[test]
    fn integers_keep_their_range() {
        for (value, fits_32, fits_64) in [
            (json!(2147483647), true, true),
            (json!(2147483648i64), false, true),
            (json!(1.5), false, false),
            (json!(u64::MAX), false, false),
            (json!("1"), false, false),
        ] {
            let node = Node::root("n", &value);
            assert_eq!(node.i32().is_ok(), fits_32, "{value}");
            assert_eq!(node.i64().is_ok(), fits_64, "{value}");
        }
        assert!(Node::root("n", &json!(-1)).unsigned().is_err());
    }
}

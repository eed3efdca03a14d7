//! Names of tables and namespaces.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// A table's name in a catalog: a namespace of any depth and a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableIdent {
    /// The namespace, outermost first; empty for the root.
    pub namespace: Vec<String>,
    /// The table's own name.
    pub name: String,
}

impl TableIdent {
    /// The table `name` in `namespace`.
    pub fn new(namespace: impl IntoIterator<Item = impl Into<String>>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into_iter().map(Into::into).collect(), name: name.into() }
    }

    /// Reads `a.b.t`; a part that holds a dot or a quote is written in double quotes, `""` within them being one quote.
    /// Case is kept.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parts = parse_parts(text)?;
        match parts.pop() {
            Some(name) => Ok(Self { namespace: parts, name }),
            None => Err(Error::invalid_input("an empty string is no table name")),
        }
    }
}

impl FromStr for TableIdent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

fn parse_parts(text: &str) -> Result<Vec<String>> {
    let bad = |what: &str| Error::invalid_input(format!("{text:?} is no table name: {what}"));
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let part = match rest.strip_prefix('"') {
            Some(quoted) => {
                let mut part = String::new();
                let mut tail = quoted;
                loop {
                    let (before, after) = tail.split_once('"').ok_or_else(|| bad("a quote is not closed"))?;
                    part.push_str(before);
                    match after.strip_prefix('"') {
                        Some(more) => {
                            part.push('"');
                            tail = more;
                        }
                        None => {
                            rest = after;
                            break part;
                        }
                    }
                }
            }
            None => {
                let end = rest.find(['.', '"']).unwrap_or(rest.len());
                let (part, tail) = rest.split_at(end);
                rest = tail;
                part.to_string()
            }
        };
        if part.is_empty() {
            return Err(bad("a part is empty"));
        }
        parts.push(part);
        match rest.strip_prefix('.') {
            Some(tail) => rest = tail,
            None if rest.is_empty() => return Ok(parts),
            None => return Err(bad("a quote stands within a part")),
        }
    }
}

impl fmt::Display for TableIdent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.namespace {
            write_part(f, part)?;
            f.write_str(".")?;
        }
        write_part(f, &self.name)
    }
}

fn write_part(f: &mut fmt::Formatter<'_>, part: &str) -> fmt::Result {
    if part.is_empty() || part.contains(['.', '"']) {
        write!(f, "\"{}\"", part.replace('"', "\"\""))
    } else {
        f.write_str(part)
    }
}

/// A namespace as text, for messages.
pub(crate) fn namespace_text(namespace: &[String]) -> String {
    struct Dotted<'a>(&'a [String]);
    impl fmt::Display for Dotted<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            for (i, part) in self.0.iter().enumerate() {
                if i > 0 {
                    f.write_str(".")?;
                }
                write_part(f, part)?;
            }
            Ok(())
        }
    }
    match namespace {
        [] => "the root namespace".to_string(),
        parts => Dotted(parts).to_string(),
    }
}

/// Refuses a name that cannot be a folder's: names become path segments, so that one with `/` or `..` would lead out of the
/// warehouse, and hidden folders are not listed.
pub(crate) fn check_folder_name(name: &str) -> Result<()> {
    let bad = |what: &str| Err(Error::invalid_input(format!("{name:?} cannot name a table or namespace: {what}")));
    if name.is_empty() {
        return bad("it is empty");
    }
    if name.starts_with('.') {
        return bad("it starts with a dot");
    }
    if let Some(c) = name.chars().find(|c| matches!(c, '/' | '\\') || c.is_control()) {
        return bad(&format!("it contains {c:?}"));
    }
    if name.len() > 255 {
        return bad("it is longer than 255 bytes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_prints() {
        for (text, namespace, name) in [
            ("t", vec![], "t"),
            ("a.t", vec!["a"], "t"),
            ("a.b.T x", vec!["a", "b"], "T x"),
            ("\"a.b\".\"t\"\"q\"", vec!["a.b"], "t\"q"),
        ] {
            let ident = TableIdent::parse(text).unwrap();
            assert_eq!(ident, TableIdent::new(namespace, name));
            assert_eq!(ident.to_string(), text);
        }
        assert_eq!("\"a\".t".parse::<TableIdent>().unwrap(), TableIdent::new(["a"], "t"));
        for text in ["", ".", "a.", ".a", "a..b", "\"a", "a\"b", "\"a\"b", "\"\".a"] {
            assert!(TableIdent::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn folder_names_stay_in_their_folder() {
        for name in ["", ".", "..", "../x", "a/b", "a\\b", "a\nb", "a\0", ".hidden", &"x".repeat(256)] {
            assert!(check_folder_name(name).is_err(), "{name:?}");
        }
        for name in ["t", "a b", "100%", "a%2Fb", "x#1", "ü", "a..b", "data", "metadata", "q?"] {
            check_folder_name(name).unwrap();
        }
    }
}

//! Recorded locations: splitting them into a store and a path, and mapping one prefix to another place.
//!
//! Invariant: a recorded location is an opaque string. It is split at its scheme and never decoded, unescaped or
//! otherwise normalised: `a%20b` and `a b` are two objects. `file:/x`, `file:///x` and the bare path `/x` are one.

use std::path::{Component, Path, PathBuf};

use crate::{Error, Result};

/// The scheme of the local file system.
pub(crate) const FILE_SCHEME: &str = "file";

/// A location split into what picks the store and what names the object in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Split<'a> {
    /// Lower case; `file` for bare paths.
    pub(crate) scheme: String,
    /// Bucket or host; empty for local files.
    pub(crate) authority: &'a str,
    /// The rest, raw, with its leading `/` unless the location is a relative path.
    pub(crate) path: &'a str,
}

/// Splits `location` at its scheme. A scheme is what RFC 3986 calls one, followed by `:/`; anything else is a bare path.
pub(crate) fn split(location: &str) -> Result<Split<'_>> {
    if location.is_empty() {
        return Err(Error::invalid_input("an empty string is no location"));
    }
    let Some((scheme, rest)) = scheme_of(location) else {
        return Ok(Split { scheme: FILE_SCHEME.to_string(), authority: "", path: location });
    };
    let scheme = scheme.to_ascii_lowercase();
    let Some(after) = rest.strip_prefix("//") else {
        return Ok(Split { scheme, authority: "", path: rest });
    };
    let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
    if scheme != FILE_SCHEME {
        return Ok(Split { scheme, authority, path });
    }
    match authority {
        "" | "localhost" => Ok(Split { scheme, authority: "", path }),
        host => {
            Err(Error::invalid_input(format!("{location} names a file on another host, {host}: write file:///path")))
        }
    }
}

fn scheme_of(location: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = location.split_once(':')?;
    let mut chars = scheme.chars();
    let valid = chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    (valid && rest.starts_with('/')).then_some((scheme, rest))
}

/// Location `dir` with `name` (one or more segments) below it; exactly one `/` between the two.
pub fn join(dir: &str, name: &str) -> String {
    format!("{}/{}", dir.trim_end_matches('/'), name.trim_start_matches('/'))
}

/// The location a person typed, as it is to be recorded: without trailing slash, and a bare path made absolute with the
/// scheme `file://`. `.` and `..` of a bare path are resolved as the operating system would; a location with a scheme is
/// taken as it is.
pub fn absolute(location: &str) -> Result<String> {
    let trimmed = match location.trim_end_matches('/') {
        "" if location.starts_with('/') => "/",
        trimmed => trimmed,
    };
    if scheme_of(location).is_some() {
        return Ok(trimmed.to_string());
    }
    split(trimmed)?;
    let cannot = |e: std::io::Error| Error::invalid_input(format!("cannot make {location} absolute")).with_source(e);
    let mut out = PathBuf::new();
    for part in std::path::absolute(Path::new(trimmed)).map_err(cannot)?.components() {
        match part {
            Component::CurDir => {}
            // `..` after a symbolic link leaves the link's target, not the folder that holds the link.
            Component::ParentDir => {
                out = out.canonicalize().unwrap_or(out);
                out.pop();
            }
            other => out.push(other),
        }
    }
    match out.to_str() {
        Some(path) => Ok(format!("file://{path}")),
        None => Err(Error::invalid_input(format!("{location} is below a folder whose name is not UTF-8"))),
    }
}

/// One rule of a location map.
#[derive(Debug, Clone)]
struct MapRule {
    scheme: String,
    authority: String,
    /// Raw path without leading or trailing `/`.
    path: String,
    /// Where the prefix really is, without trailing `/`.
    to: String,
}

/// Rules that send locations below one prefix to another place.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocationMap {
    rules: Vec<MapRule>,
}

impl LocationMap {
    /// Adds a rule. A later rule for the same prefix replaces the earlier one.
    pub(crate) fn add(&mut self, from: &str, to: &str) -> Result<()> {
        let to = absolute(to)?;
        let from = absolute(from)?;
        let from = split(&from)?;
        let (scheme, authority) = (from.scheme, from.authority.to_string());
        let path = from.path.trim_matches('/').to_string();
        self.rules.retain(|r| (&r.scheme, &r.authority, &r.path) != (&scheme, &authority, &path));
        self.rules.push(MapRule { scheme, authority, path, to });
        // The longest prefix is tried first.
        self.rules.sort_by_key(|r| std::cmp::Reverse(r.path.len()));
        Ok(())
    }

    /// The mapped location, or `None` when no rule applies. A result is not mapped again.
    pub(crate) fn apply(&self, location: &Split<'_>) -> Option<String> {
        let path = location.path.trim_start_matches('/');
        self.rules.iter().find_map(|rule| {
            if rule.scheme != location.scheme || rule.authority != location.authority {
                return None;
            }
            let rest = if rule.path.is_empty() { path } else { path.strip_prefix(rule.path.as_str())? };
            match rest.strip_prefix('/') {
                Some(rest) => Some(join(&rule.to, rest)),
                None if rest.is_empty() => Some(rule.to.clone()),
                None if rule.path.is_empty() => Some(join(&rule.to, rest)),
                None => None,
            }
        })
    }
}

/// The path of an object in its store, from the raw remainder of a location.
///
/// Refuses what no store can address or what could leave the intended folder: `.` and `..` segments, ASCII control
/// characters, and empty segments except on the local file system, where `a//b` is `a/b`.
pub(crate) fn object_path(location: &str, raw: &str, local: bool) -> Result<object_store::path::Path> {
    let refuse = |what: String| Err(Error::invalid_input(format!("cannot address {location:?}: {what}")));
    let raw = raw.trim_matches('/');
    let mut collapsed = None;
    for segment in raw.split('/') {
        if segment == "." || segment == ".." {
            return refuse(format!("the path segment {segment:?} would be resolved against other folders"));
        }
        if let Some(c) = segment.chars().find(char::is_ascii_control) {
            return refuse(format!("it contains the control character {c:?}"));
        }
        if segment.is_empty() && !raw.is_empty() {
            if !local {
                return refuse("it contains an empty path segment".to_string());
            }
            collapsed = Some(raw.split('/').filter(|s| !s.is_empty()).collect::<Vec<_>>().join("/"));
        }
    }
    object_store::path::Path::parse(collapsed.as_deref().unwrap_or(raw))
        .map_err(|e| Error::invalid_input(format!("cannot address {location:?}")).with_source(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_spellings_are_one_local_object() {
        for location in ["file:/a/b", "file:///a/b", "FILE:///a/b", "file://localhost/a/b", "/a/b"] {
            let s = split(location).unwrap();
            assert_eq!((s.scheme.as_str(), s.authority, s.path), ("file", "", "/a/b"), "{location}");
        }
        assert_eq!(split("rel/a:b").unwrap().path, "rel/a:b");
        assert_eq!(split("c:x").unwrap().path, "c:x");
        let s3 = split("s3://bucket/k/x?y#z").unwrap();
        assert_eq!((s3.scheme.as_str(), s3.authority, s3.path), ("s3", "bucket", "/k/x?y#z"));
        assert!(split("file://host/a").unwrap_err().message().contains("another host"));
        assert!(split("").is_err());
    }

    #[test]
    fn paths_are_never_decoded() {
        for raw in ["/a%20b/c", "/a b+c=d", "/x#y?z", "/ü/%2F", "/%2E%2E/x"] {
            assert_eq!(object_path(raw, raw, true).unwrap().as_ref(), &raw[1..]);
        }
    }

    #[test]
    fn refuses_relative_segments_and_control_characters() {
        for raw in ["/a/../b", "/a/./b", "/..", "/a\nb", "/a\u{7f}"] {
            let e = object_path(raw, raw, true).unwrap_err();
            assert_eq!(e.kind(), crate::ErrorKind::InvalidInput);
            assert!(e.message().contains("cannot address"), "{e}");
        }
        assert_eq!(object_path("", "/a//b/", true).unwrap().as_ref(), "a/b");
        assert!(object_path("s3://x/a//b", "/a//b", false).unwrap_err().message().contains("empty path segment"));
    }

    #[test]
    fn maps_the_longest_prefix_at_a_segment_boundary() {
        let mut map = LocationMap::default();
        map.add("file:/warehouse/golden", "/g").unwrap();
        map.add("/warehouse/golden/deep/", "file:///d").unwrap();
        map.add("s3://b/p", "/s3").unwrap();
        let apply = |l: &str| map.apply(&split(l).unwrap());
        for form in ["file:/warehouse/golden/t/x", "file:///warehouse/golden/t/x", "/warehouse/golden/t/x"] {
            assert_eq!(apply(form).as_deref(), Some("file:///g/t/x"), "{form}");
        }
        assert_eq!(apply("file:/warehouse/golden/deep/x").as_deref(), Some("file:///d/x"));
        assert_eq!(apply("file:/warehouse/golden").as_deref(), Some("file:///g"));
        assert_eq!(apply("file:/warehouse/golden2/x"), None);
        assert_eq!(apply("file:/warehouse"), None);
        assert_eq!(apply("s3://b/p/k").as_deref(), Some("file:///s3/k"));
        assert_eq!(apply("s3://c/p/k"), None);
        map.add("file:///warehouse/golden", "/other").unwrap();
        assert_eq!(map.apply(&split("/warehouse/golden/t").unwrap()).as_deref(), Some("file:///other/t"));
    }

    #[test]
    fn typed_locations_become_absolute() {
        let cwd = std::env::current_dir().unwrap();
        let cwd = cwd.to_str().unwrap();
        assert_eq!(absolute("./w/").unwrap(), format!("file://{cwd}/w"));
        assert_eq!(absolute("no-such/../w").unwrap(), format!("file://{cwd}/w"));
        assert_eq!(absolute("/a b/").unwrap(), "file:///a b");
        assert_eq!(absolute("s3://b/x/").unwrap(), "s3://b/x");
        assert_eq!(absolute("file:/x").unwrap(), "file:/x");
    }
}

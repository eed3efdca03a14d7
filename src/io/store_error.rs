//! From the errors of object_store to ours.

use std::io;

use crate::{Error, ErrorKind};

/// Context name that an error of [`FileIo::create`](super::FileIo::create) carries when the object may exist after all.
pub(crate) const AMBIGUOUS: &str = "ambiguous";

/// Our error for a failed `action` ("read", "write", …) on `location`.
pub(crate) fn convert(action: &str, location: &str, error: object_store::Error, local: bool) -> Error {
    use object_store::Error as E;
    if local && is_staging_name(location) {
        return Error::unsupported(format!(
            "cannot {action} {location}: names that end in # and digits are those of unfinished local files"
        ));
    }
    let kind = match &error {
        E::NotFound { .. } => ErrorKind::NotFound,
        E::AlreadyExists { .. } => ErrorKind::AlreadyExists,
        E::InvalidPath { .. } => ErrorKind::InvalidInput,
        E::NotSupported { .. } | E::NotImplemented { .. } => ErrorKind::Unsupported,
        _ => ErrorKind::Unavailable,
    };
    let message = match kind {
        ErrorKind::NotFound => format!("there is no file {location}"),
        ErrorKind::AlreadyExists => format!("file {location} exists already"),
        _ => format!("cannot {action} {location}"),
    };
    match kind {
        ErrorKind::NotFound | ErrorKind::AlreadyExists => Error::new(kind, message),
        _ if local => Error::new(kind, message).with_source(error),
        // A remote store's text may quote a signed URL.
        _ => Error::new(kind, message).with_source(redact(&error.to_string())),
    }
}

/// Whether the local store takes the name for that of a file it is still writing.
fn is_staging_name(location: &str) -> bool {
    let name = location.rsplit('/').next().unwrap_or_default();
    name.split_once('#').is_some_and(|(_, s)| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether the object may have been written although `error` came back. A local file has its name only once it is whole, so
/// one that the system did not let begin or fill is not there.
pub(crate) fn is_ambiguous(error: &object_store::Error, local: bool) -> bool {
    use object_store::Error as E;
    if local && io_kind(error).is_some_and(|kind| NOT_WRITTEN.contains(&kind)) {
        return false;
    }
    !matches!(
        error,
        E::NotFound { .. }
            | E::AlreadyExists { .. }
            | E::InvalidPath { .. }
            | E::NotSupported { .. }
            | E::NotImplemented { .. }
            | E::PermissionDenied { .. }
            | E::Unauthenticated { .. }
    )
}

const NOT_WRITTEN: [io::ErrorKind; 6] = [
    io::ErrorKind::NotADirectory,
    io::ErrorKind::PermissionDenied,
    io::ErrorKind::QuotaExceeded,
    io::ErrorKind::ReadOnlyFilesystem,
    io::ErrorKind::StorageFull,
    io::ErrorKind::TooManyLinks,
];

/// What the system said, if an error of its own lies below.
fn io_kind(error: &object_store::Error) -> Option<io::ErrorKind> {
    let mut at: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = at {
        if let Some(found) = error.downcast_ref::<io::Error>() {
            return Some(found.kind());
        }
        at = error.source();
    }
    None
}

/// `text` without the query part and the user part of every URL in it.
pub(crate) fn redact(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '>' | ']' | ',' | ';');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let (url, tail) = after.split_at(after.find(ends).unwrap_or(after.len()));
        let (head, query) = url.split_at(url.find('?').unwrap_or(url.len()));
        let host = head.split_at(head.find('/').unwrap_or(head.len()));
        out.push_str(host.0.rsplit_once('@').map_or(host.0, |(_, host)| host));
        out.push_str(host.1);
        if !query.is_empty() {
            out.push_str("?…");
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_leaves_no_doubt() {
        let error =
            |kind: io::ErrorKind| object_store::Error::Generic { store: "x", source: io::Error::from(kind).into() };
        assert!(!is_ambiguous(&error(io::ErrorKind::StorageFull), true));
        assert!(is_ambiguous(&error(io::ErrorKind::StorageFull), false));
        assert!(is_ambiguous(&error(io::ErrorKind::TimedOut), true));
    }

    #[test]
    fn redacts_queries_and_users() {
        let text = r#"PUT "https://key:secret@h.net/c/b?sig=abc&se=1" failed, see http://x/y"#;
        assert_eq!(redact(text), r#"PUT "https://h.net/c/b?…" failed, see http://x/y"#);
        assert_eq!(redact("no url?x"), "no url?x");
    }
}

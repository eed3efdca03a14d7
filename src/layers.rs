//! Checks the layers of the crate: a module uses only those listed before it, and files stay readable in length.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules in the order of their layers; each may use those before it.
const LAYERS: &[&str] = &[
    "error",
    "env",
    "spec",
    "expr",
    "io",
    "catalog",
    "table",
    "columns",
    "scan",
    "writer",
    "transaction",
    "options",
    "provider",
    "dml",
    "maintenance",
    "session",
];

/// The first layer that may use DataFusion; arrow and parquet are allowed below.
const DATAFUSION_FROM: &str = "options";

const MAX_LINES: usize = 1000;

fn rank(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == module)
}

fn rust_files(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Code without comments and without inline test modules.
fn production_code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn is_test_file(path: &Path) -> bool {
    path.components().any(|part| {
        let name = part.as_os_str().to_string_lossy();
        name == "tests" || name == "tests.rs" || name.ends_with("_tests.rs")
    })
}

/// Names that follow `crate::` in the code.
fn used_modules(code: &str) -> Vec<String> {
    let mut used = Vec::new();
    for part in code.split("crate::").skip(1) {
        if let Some(group) = part.strip_prefix('{') {
            let mut depth = 0usize;
            let mut name = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    c if depth == 0 && (c.is_alphanumeric() || c == '_') => {
                        name.push(c);
                        continue;
                    }
                    _ => {}
                }
                if !name.is_empty() {
                    used.push(std::mem::take(&mut name));
                }
            }
            used.push(name);
        } else {
            used.push(part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    used
}

#[test]
fn layers_use_only_those_before_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    assert!(files.len() > 50, "found only {} source files", files.len());
    let datafusion_from = rank(DATAFUSION_FROM).unwrap();
    let mut breaches = Vec::new();
    for path in files {
        let relative = path.strip_prefix(&src).unwrap().to_path_buf();
        let top =
            relative.components().next().unwrap().as_os_str().to_string_lossy().trim_end_matches(".rs").to_string();
        let Some(own) = rank(&top) else {
            assert!(
                ["lib", "layers", "testing", "bin"].contains(&top.as_str()),
                "{}: module {top} is in no layer; add it to LAYERS",
                relative.display()
            );
            continue;
        };
        if is_test_file(&relative) {
            continue;
        }
        let code = production_code(&fs::read_to_string(&path).unwrap());
        for used in used_modules(&code) {
            if rank(&used).is_some_and(|rank| rank > own) {
                breaches.push(format!("{} uses {used}", relative.display()));
            }
        }
        if own < datafusion_from && code.contains("datafusion") {
            breaches.push(format!("{} uses DataFusion", relative.display()));
        }
    }
    assert!(breaches.is_empty(), "layers are breached:\n{}", breaches.join("\n"));
}

#[test]
fn files_stay_under_the_limit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for dir in ["src", "tests", "benches", "examples", "sql-tests"] {
        if root.join(dir).is_dir() {
            rust_files(&root.join(dir), &mut files);
        }
    }
    let long: Vec<String> = files
        .iter()
        .map(|path| (path, fs::read_to_string(path).unwrap().lines().count()))
        .filter(|(_, lines)| *lines >= MAX_LINES)
        .map(|(path, lines)| format!("{} has {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "split by what they do:\n{}", long.join("\n"));
}

#[test]
fn a_breach_would_be_seen() {
    assert_eq!(used_modules("use crate::dml::x; crate::{spec::{a, b}, io};"), ["dml", "spec", "io"]);
}

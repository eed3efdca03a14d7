//! The shell, through its binary.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs the shell in `dir` with these arguments, its home being `dir` too.
fn calve(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calve"));
    command.current_dir(dir).env("HOME", dir).args(args).stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Output with the seconds taken out.
fn timeless(text: &str) -> String {
    let timed =
        |line: &str| if line.starts_with("Elapsed ") { "Elapsed T seconds.".to_owned() } else { line.to_owned() };
    text.lines().map(timed).collect::<Vec<_>>().join("\n")
}

#[test]
fn prints_results_as_datafusion_cli_does() {
    let dir = tempfile::tempdir().unwrap();
    let output = calve(dir.path(), &["-c", "select 1 as a, 'x' as b"]);
    let expected = "\
+---+---+
| a | b |
+---+---+
| 1 | x |
+---+---+
1 row(s) fetched. 
Elapsed T seconds.
";
    assert_eq!(timeless(&stdout(&output)), expected.trim_end_matches('\n').to_owned() + "\n");
    assert_eq!(stderr(&output), "");
}

#[test]
fn every_format_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let sql = "select * from (values (1, 'x,y'), (2, null)) t(a, b) order by a";
    for (format, expected) in [
        ("csv", "a,b\n1,\"x,y\"\n2,\n"),
        ("tsv", "a\tb\n1\tx,y\n2\t\n"),
        ("json", "[{\"a\":1,\"b\":\"x,y\"},{\"a\":2}]\n"),
        ("nd-json", "{\"a\":1,\"b\":\"x,y\"}\n{\"a\":2}\n"),
        ("table", "+---+-----+\n| a | b   |\n+---+-----+\n| 1 | x,y |\n| 2 |     |\n+---+-----+\n"),
    ] {
        assert_eq!(stdout(&calve(dir.path(), &["-q", "--format", format, "-c", sql])), expected, "{format}");
    }
    assert_eq!(stdout(&calve(dir.path(), &["-q", "--format", "csv", "-c", "select 1 as a where false"])), "");
}

#[test]
fn long_results_are_cut() {
    let dir = tempfile::tempdir().unwrap();
    let sql = "select value as v from generate_series(1, 5)";
    let text = stdout(&calve(dir.path(), &["--maxrows", "2", "-b", "1", "-c", sql]));
    let expected = "\
+---+
| v |
+---+
| 1 |
| 2 |
| . |
| . |
| . |
+---+
5 row(s) fetched. (First 2 displayed. Use --maxrows to adjust)
Elapsed T seconds.
";
    assert_eq!(timeless(&text), expected);
    let text = stdout(&calve(dir.path(), &["-q", "--maxrows", "inf", "-c", sql]));
    assert_eq!(text.lines().count(), 9);
}

#[test]
fn statements_stop_at_the_first_failure() {
    let dir = tempfile::tempdir().unwrap();
    let output =
        calve(dir.path(), &["-q", "-c", "select 1 as a", "-c", "select * from nowhere; select 2", "-c", "select 3"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.contains("| 1 |") && !text.contains("| 2 |") && !text.contains("| 3 |"), "{text}");
    let error = stderr(&output);
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("error: not found: ") && error.contains("nowhere"), "{error}");
}

#[test]
fn errors_of_a_file_name_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.sql");
    std::fs::write(&file, "-- first\nselect 1;\n\\quiet on\n\nselect\n  2;\n\nselect * from nowhere;\nselect 3;\n")
        .unwrap();
    let output = calve(dir.path(), &["-q", "-f", "x.sql"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: x.sql:8: not found: "), "{}", stderr(&output));
    std::fs::write(&file, "select 1;\nselect 'a;\n").unwrap();
    let output = calve(dir.path(), &["-q", "-f", "x.sql"]);
    assert!(stderr(&output).contains("line 2, column 8"), "{}", stderr(&output));
    let output = calve(dir.path(), &["-f", "missing.sql"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot read missing.sql"), "{}", stderr(&output));
}

#[test]
fn arguments_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    for args in [&["--format", "xml"][..], &["--map", "x"], &["-m", "lots"], &["--no-such-option"]] {
        assert_eq!(calve(dir.path(), args).status.code(), Some(2), "{args:?}");
    }
    let output = calve(dir.path(), &["--warehouse", "ftp://host/x", "-c", "select 1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: unsupported: "), "{}", stderr(&output));
    assert!(stdout(&calve(dir.path(), &["--help"])).contains("--warehouse"));
}

#[test]
fn a_table_lasts_from_one_run_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let run = |sql: &str| stdout(&calve(dir.path(), &["-q", "--format", "csv", "-c", sql]));
    assert_eq!(run("create table t (id bigint not null, \"Name\" string) partitioned by (bucket(4, id))"), "");
    assert_eq!(run("select count(*) as n from t"), "n\n0\n");
    assert!(dir.path().join("warehouse/default/t/metadata/v1.metadata.json").is_file());
    assert!(run("show tables").contains("lake,default,t,"));
    assert!(run("describe t").contains("Name,"));
    assert!(run("drop table t").contains("stay in"));
    assert!(!dir.path().join("warehouse/default/t/metadata").exists());
    let error = stderr(&calve(dir.path(), &["-c", "select * from t"]));
    assert!(error.contains("not found"), "{error}");
}

#[test]
fn maps_locations_of_copied_tables() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/golden");
    let dir = tempfile::tempdir().unwrap();
    let map = format!("file:/warehouse/golden={golden}");
    let sql = format!(
        "create external table t stored as iceberg location '{golden}/p_month_date'; select count(*) > 0 as some from t"
    );
    let output = calve(dir.path(), &["-q", "--format", "csv", "--map", &map, "-c", &sql]);
    assert_eq!(stdout(&output), "some\ntrue\n");
}

/// Runs the shell with `input` piped in.
fn piped(dir: &Path, args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calve"));
    command.current_dir(dir).env("HOME", dir).args(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn commands_and_files_are_piped_in() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("inc.sql"), "select 'included' as i;\n\\q\nselect 'hidden' as h;").unwrap();
    let input = "\\?\n\\quiet on\n\\pset format csv\nselect 1\n  as one;\n\\i inc.sql\n\\d\n\\quiet\n\\q\nselect 'after' as a;\n";
    let output = piped(dir.path(), &["--maxrows", "3"], input);
    let text = stdout(&output);
    assert!(text.starts_with("+---"), "{text}");
    assert!(text.contains("| \\pset [NAME [VALUE]] | change printing format"), "{text}");
    assert!(
        text.contains("one\n1\n") && text.contains("i\nincluded\n") && text.contains("Quiet mode is true"),
        "{text}"
    );
    assert!(text.contains("table_catalog,table_schema,table_name,table_type"), "{text}");
    assert!(!text.contains("after") && !text.contains("hidden"), "{text}");
    assert_eq!(stderr(&output), "");
}

#[test]
fn piped_statements_print_nothing_of_a_prompt() {
    let dir = tempfile::tempdir().unwrap();
    let csv = ["-q", "--format", "csv"];
    let run = |input: &str| stdout(&piped(dir.path(), &csv, input));
    assert_eq!(run("select 1 as a;\nselect 2 as b;\n"), "a\n1\nb\n2\n");
    // The last statement needs no semicolon, and none is dropped.
    assert_eq!(run("select 1 as a;select 2 as b"), "a\n1\nb\n2\n");
    assert_eq!(run("select\n\n 1 as a -- ;\n"), "a\n1\n");
    assert_eq!(run(""), "");
    assert_eq!(run("select 1 as a;\nquit;\nselect 2 as b;"), "a\n1\n");
    assert_eq!(run("select ';\n' as a, 'quit\n' as b;\n").lines().count(), 4);
}

#[test]
fn a_failure_ends_what_is_piped_in_with_its_status() {
    let dir = tempfile::tempdir().unwrap();
    let input = "select 1 as a;\n\nselect * from nowhere;\nselect 3 as c;\n";
    for (input, error) in [
        (input, "error: stdin:3: not found: "),
        ("select 1 as a;\n\\x\nselect 3 as c;\n", "error: stdin:2: invalid input: \\x is no command"),
    ] {
        let output = piped(dir.path(), &["-q", "--format", "csv"], input);
        assert_eq!(output.status.code(), Some(1), "{input}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "a\n1\n");
        assert!(stderr(&output).starts_with(error), "{}", stderr(&output));
    }
}

#[test]
fn a_command_ends_a_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.sql"), "select 1 as a;\n\\q\nselect 2 as b;\n").unwrap();
    let output = calve(dir.path(), &["-q", "--format", "csv", "-f", "x.sql", "-c", "select 3 as c"]);
    assert_eq!(stdout(&output), "c\n3\na\n1\n");
}

#[test]
fn plans_are_trees_that_say_what_a_delete_does() {
    let dir = tempfile::tempdir().unwrap();
    let make = "create table t (a int) partitioned by (a); insert into t values (1), (2), (3)";
    let sql = format!("{make}; explain delete from t where a < 2; explain delete from t where a + 1 = 3");
    let text = stdout(&calve(dir.path(), &["-q", "-c", &sql]));
    assert!(text.contains("┌──────") && text.contains("files dropped") && text.contains("files scanned"), "{text}");
    let wide = text.lines().map(|line| line.chars().count()).max();
    assert!(wide < Some(100), "{text}");
    let indented = stdout(&calve(dir.path(), &["-q", "-c", "explain format indent delete from t where a < 2"]));
    assert!(indented.contains("CommitExec: delete from default.t, mode=copy-on-write, files: dropped=1"), "{indented}");
}

#[test]
fn long_chains_of_conditions_are_planned() {
    let dir = tempfile::tempdir().unwrap();
    let make =
        "create table t (id bigint, s string); insert into t select value, 's' || value from generate_series(1, 50)";
    stdout(&calve(dir.path(), &["-q", "-c", make]));
    let chain =
        |count: usize, link: &str, term: &dyn Fn(usize) -> String| (0..count).map(term).collect::<Vec<_>>().join(link);
    let ors = chain(20_000, " OR ", &|i| format!("id = {}", i + 40));
    let pairs = chain(1_500, " OR ", &|i| format!("(id = {} AND s = 's{}')", i + 30, i + 30));
    let ands = chain(1_500, " AND ", &|i| format!("id <> {}", i + 10));
    let list = chain(50_000, ", ", &|i| (i + 5).to_string());
    let mut sql = String::new();
    for condition in [ors, pairs, ands, format!("id IN ({list})")] {
        sql += &format!("delete from t where {condition};\n");
    }
    let counts = stdout(&piped(dir.path(), &["-q", "--format", "csv"], &sql));
    assert_eq!(counts, "count\n11\ncount\n10\ncount\n9\ncount\n20\n");
    let sum = format!("delete from t where id = {}", chain(3_000, " + ", &|_| "1".to_owned()));
    let output = piped(dir.path(), &["-q"], &sum);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("operators in a row"), "{}", stderr(&output));
}

#[test]
fn startup_files_run_first() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(".calverc"), "\\pset format csv\nset datafusion.execution.batch_size = 7;").unwrap();
    let sql = "select value from information_schema.df_settings where name = 'datafusion.execution.batch_size'";
    assert_eq!(stdout(&calve(dir.path(), &["-q", "-c", sql])), "value\n7\n");
    std::fs::write(dir.path().join("rc"), "set datafusion.execution.batch_size = 9;").unwrap();
    assert!(stdout(&calve(dir.path(), &["-q", "-r", "rc", "-c", sql])).contains("| 9     |"));
}

#[test]
fn the_quickstart_counts_what_is_left() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let warehouse = dir.path().join("warehouse");
    let output = Command::new(env!("CARGO_BIN_EXE_calve"))
        .current_dir(root)
        .env("HOME", dir.path())
        .args(["-q", "--format", "csv", "-f", "examples/quickstart.sql", "--warehouse"])
        .arg(&warehouse)
        .env("DATAFUSION_EXPLAIN_FORMAT", "indent")
        .output()
        .unwrap();
    let text = stdout(&output);
    let mut rest = text.as_str();
    for expected in [
        "count\n336776\n",
        "flights,cancelled\n336776,8255\n",
        "dropped=0, pruned=0, scanned=",
        "count\n8255\n",
        "flights\n328521\n",
        "dropped=1, pruned=",
        "scanned=0",
        "count\n27234\n",
        "flights\n301287\n",
        "count\n1156\n",
        "flights,planes,first,last\n300131,",
        "months_since_1970,files,flights\n516,",
    ] {
        let at = rest.find(expected).unwrap_or_else(|| panic!("{expected:?} is missing from {rest}"));
        rest = &rest[at + expected.len()..];
    }
    let march = "518,";
    assert_eq!(rest.lines().filter(|line| line.starts_with(march)).count(), 1, "{rest}");
    assert!(!rest.contains("\n521,"), "June is not gone: {rest}");
}

"""Writes tables with calve and reads them with PyIceberg, DuckDB and Spark: every reader must see the rows of a plain model.

Each case is a format version, a mode and a partitioning; the same statements run in all of them, and after each
statement the rows are compared. Spark reads the tables once, at the end, with the row lineage of format version 3.
"""

import datetime
import decimal
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
from pyiceberg.table import StaticTable

import spark

COLUMNS = """
    id BIGINT NOT NULL, region STRING, amount DECIMAL(12, 2), ratio DOUBLE, day DATE, at TIMESTAMPTZ,
    flag BOOLEAN, raw BINARY, tags ARRAY<STRING>, place STRUCT<city: STRING, zip: INT>
"""

REGIONS = ["eu", "us", None, "", "a b", "a/b=c%d", "naïve"]


def row(i):
    ratio = [i / 4, math.nan, -0.0, math.inf, None][i % 5]
    return {
        "id": i,
        "region": REGIONS[i % len(REGIONS)],
        "amount": None if i % 11 == 0 else decimal.Decimal(i * 7 - 300).scaleb(-2),
        "ratio": ratio,
        "day": datetime.date(1969, 12, 1) + datetime.timedelta(days=i % 90),
        "at": datetime.datetime(1969, 12, 31, 23, tzinfo=datetime.timezone.utc) + datetime.timedelta(minutes=i * 17),
        "flag": [True, False, None][i % 3],
        "raw": None if i % 13 == 0 else bytes([i % 256, 0, 255]),
        "tags": None if i % 10 == 9 else ["t%d" % (i % 4)] * (i % 3),
        "place": {"city": "c%d" % (i % 5), "zip": None if i % 4 == 0 else i},
    }


def literal(value, name):
    if value is None:
        return "NULL"
    if name == "ratio":
        return f"CAST('{'NaN' if math.isnan(value) else value}' AS DOUBLE)"
    if name == "region":
        return "'" + value + "'"
    if name == "amount":
        return f"CAST('{value}' AS DECIMAL(12, 2))"
    if name == "day":
        return f"DATE '{value}'"
    if name == "at":
        return f"TIMESTAMP '{value.strftime('%Y-%m-%dT%H:%M:%SZ')}'"
    if name == "raw":
        return f"X'{value.hex()}'"
    if name == "tags":
        return "CAST([" + ", ".join(f"'{tag}'" for tag in value) + "] AS VARCHAR[])"
    if name == "place":
        zip_code = "CAST(NULL AS INT)" if value["zip"] is None else f"CAST({value['zip']} AS INT)"
        return f"named_struct('city', '{value['city']}', 'zip', {zip_code})"
    return str(value).lower() if isinstance(value, bool) else str(value)


def insert(rows):
    values = ", ".join("(" + ", ".join(literal(v, k) for k, v in r.items()) + ")" for r in rows)
    return f"INSERT INTO t VALUES {values}"


def inserting(numbers):
    rows = [row(i) for i in numbers]
    return insert(rows), lambda model: model + rows


def deleting(condition, matches):
    """`matches` says of which rows the condition is true."""
    return f"DELETE FROM t WHERE {condition}", lambda model: [r for r in model if not matches(r)]


def updating(assignments, condition, matches, change):
    changed = lambda model: [{**r, **change(r)} if matches(r) else r for r in model]
    return f"UPDATE t SET {assignments} WHERE {condition}", changed


def merge(model):
    source = {i: row(i) for i in range(150, 260)}
    merged = []
    for r in model:
        other = source.pop(r["id"], None)
        if other is None:
            if not r["id"] % 40 == 0:
                merged.append(r)
        elif r["id"] % 10 == 5:
            pass
        elif r["flag"]:
            merged.append({**r, "region": "merged", "amount": other["amount"], "place": {"city": "m", "zip": None}})
        else:
            merged.append(r)
    return merged + [{**{name: None for name in other}, "id": i, "day": other["day"]} for i, other in source.items()]


# Statement and what it makes of the rows.
STATEMENTS = [
    inserting(range(0, 120)),
    inserting(range(120, 200)),
    deleting("id % 17 = 3", lambda r: r["id"] % 17 == 3),
    deleting("id IN (1, 2, 150) OR ratio > 1e300",
             lambda r: r["id"] in (1, 2, 150) or r["ratio"] is not None and (math.isnan(r["ratio"]) or r["ratio"] > 1e300)),
    updating("amount = amount + 1, region = upper(region)", "id % 9 = 4", lambda r: r["id"] % 9 == 4,
             lambda r: {"amount": r["amount"] and r["amount"] + 1, "region": r["region"] and r["region"].upper()}),
    deleting("region = 'eu'", lambda r: r["region"] == "eu"),
    deleting("region IS NULL AND id < 100", lambda r: r["region"] is None and r["id"] < 100),
    inserting(range(200, 230)),
    updating("place.zip = id, day = day + INTERVAL '40 days'", "flag", lambda r: r["flag"],
             lambda r: {"place": {**r["place"], "zip": r["id"]}, "day": r["day"] + datetime.timedelta(days=40)}),
    deleting("place['zip'] BETWEEN 205 AND 215",
             lambda r: r["place"]["zip"] is not None and 205 <= r["place"]["zip"] <= 215),
    (f"""MERGE INTO t USING ({insert([row(i) for i in range(150, 260)]).replace("INSERT INTO t", "SELECT * FROM (")})
        AS v ({", ".join(row(0))})) AS s ON t.id = s.id
        WHEN MATCHED AND t.id % 10 = 5 THEN DELETE
        WHEN MATCHED AND t.flag THEN UPDATE SET region = 'merged', amount = s.amount, place = named_struct('city', 'm', 'zip', NULL)
        WHEN NOT MATCHED THEN INSERT (id, day) VALUES (s.id, s.day)
        WHEN NOT MATCHED BY SOURCE AND t.id % 40 = 0 THEN DELETE""", merge),
    deleting("id NOT IN (SELECT id FROM t WHERE flag) AND amount > 10",
             lambda r: not r["flag"] and r["amount"] is not None and r["amount"] > 10),
]

PARTITIONINGS = ["", "PARTITIONED BY (region)", "PARTITIONED BY (bucket(4, id), month(day))",
                 "PARTITIONED BY (truncate(2, region), day(at))"]


def canonical(value):
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, dict):
        return {k: canonical(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [canonical(v) for v in value]
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    return None if value is None else str(value)


def canonical_rows(rows):
    return sorted((json.dumps({k: canonical(v) for k, v in r.items()}, sort_keys=True) for r in rows))


def calve(binary, warehouse, *statements, form="automatic"):
    arguments = [binary, "--warehouse", str(warehouse), "-q", "--format", form]
    for statement in statements:
        arguments += ["-c", statement]
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"calve failed: {done.stderr}\n{statements[-1][:300]}")
    return done.stdout


def current_metadata(warehouse):
    folder = warehouse / "default" / "t" / "metadata"
    files = folder.glob("v*.metadata.json")
    return max(files, key=lambda path: int(path.name[1:].split(".")[0]))


def duckdb_connection():
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for package in (duckdb_extension_avro, duckdb_extension_iceberg):
        (extension,) = pathlib.Path(package.__file__).parent.rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def compare(reader, rows, wanted, where):
    rows = canonical_rows(rows)
    if rows != wanted:
        missing = [r for r in wanted if r not in rows][:3]
        extra = [r for r in rows if r not in wanted][:3]
        raise SystemExit(f"{where}: {reader} sees {len(rows)} rows, {len(wanted)} wanted; missing {missing}; extra {extra}")


def check_case(binary, connection, warehouse, version, mode, partitioning):
    """Runs the statements and returns the rows at the end and the number of comparisons."""
    comparisons = 0
    calve(binary, warehouse, f"""CREATE TABLE t ({COLUMNS}) {partitioning}
        TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = '{mode}', 'write.update.mode' = '{mode}',
        'write.merge.mode' = '{mode}')""")
    model = []
    for statement, change in STATEMENTS:
        calve(binary, warehouse, statement)
        model = change(model)
        wanted = canonical_rows(model)
        metadata = current_metadata(warehouse)
        where = f"v{version} {mode} [{partitioning}] after {statement[:80]}"
        compare("PyIceberg", StaticTable.from_metadata(str(metadata)).scan().to_arrow().to_pylist(), wanted, where)
        result = connection.execute(f"SELECT * FROM iceberg_scan('{metadata}')")
        names = [column[0] for column in result.description]
        compare("DuckDB", [dict(zip(names, r)) for r in result.fetchall()], wanted, where)
        comparisons += 2
    return model, comparisons


def check_with_spark(binary, folder, cases):
    """Has Spark read the tables of all cases; returns the number of comparisons."""
    reason = spark.why_not()
    if reason is not None:
        print(f"skipped: Spark does not read the tables, because {reason}", flush=True)
        return 0
    session = spark.session(folder)
    comparisons = 0
    for number, (version, mode, partitioning, warehouse, model) in enumerate(cases):
        where = f"v{version} {mode} [{partitioning}]"
        spark.catalog(session, f"case{number}", warehouse)
        table = f"case{number}.default.t"
        columns = ", ".join("date_format(at, \"yyyy-MM-dd'T'HH:mm:ss+00:00\") AS at" if c == "at" else c for c in row(0))
        wanted = [{**r, "at": r["at"] and canonical(r["at"])} for r in model]
        compare("Spark", spark.rows(session, f"SELECT {columns} FROM {table}"), canonical_rows(wanted), where)
        comparisons += 1
        if version >= 3:
            lineage = "SELECT id, _row_id, _last_updated_sequence_number FROM"
            own = calve(binary, warehouse, f"{lineage} t ORDER BY id", form="csv").split()[1:]
            others = [",".join(map(str, r.values())) for r in spark.rows(session, f"{lineage} {table} ORDER BY id")]
            if own != others:
                raise SystemExit(f"{where}: row lineage differs, calve against Spark: {set(own) ^ set(others)}")
            comparisons += 1
    session.stop()
    print(f"ok: Spark reads {len(cases)} tables", flush=True)
    return comparisons


def main():
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    connection = duckdb_connection()
    passed, cases = 0, []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for version in (2, 3):
            for mode in ("copy-on-write", "merge-on-read"):
                for partitioning in PARTITIONINGS:
                    warehouse = folder / f"case{len(cases)}"
                    model, comparisons = check_case(binary, connection, warehouse, version, mode, partitioning)
                    cases.append((version, mode, partitioning, warehouse, model))
                    passed += comparisons
                    print(f"ok: v{version} {mode} {partitioning or 'unpartitioned'}", flush=True)
        passed += check_with_spark(binary, folder, cases)
    print(f"interop: {passed} passed, 0 failed")


if __name__ == "__main__":
    main()

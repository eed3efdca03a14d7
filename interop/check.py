"""Writes tables with calve and reads them with PyIceberg and DuckDB: every reader must see the rows of a plain model.

Each case is a format version, a delete mode and a partitioning; the same statements run in all of them, and after each
statement the rows are compared.
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


# Statement and the rows it deletes (SQL's rule: only where the condition is true).
STATEMENTS = [
    (insert([row(i) for i in range(0, 120)]), None),
    (insert([row(i) for i in range(120, 200)]), None),
    ("DELETE FROM t WHERE id % 17 = 3", lambda r: r["id"] % 17 == 3),
    ("DELETE FROM t WHERE id IN (1, 2, 150) OR ratio > 1e300",
     lambda r: r["id"] in (1, 2, 150) or r["ratio"] is not None and (math.isnan(r["ratio"]) or r["ratio"] > 1e300)),
    ("DELETE FROM t WHERE region = 'eu'", lambda r: r["region"] == "eu"),
    ("DELETE FROM t WHERE region IS NULL AND id < 100", lambda r: r["region"] is None and r["id"] < 100),
    (insert([row(i) for i in range(200, 230)]), None),
    ("DELETE FROM t WHERE place['zip'] BETWEEN 205 AND 215",
     lambda r: r["place"]["zip"] is not None and 205 <= r["place"]["zip"] <= 215),
    ("DELETE FROM t WHERE id NOT IN (SELECT id FROM t WHERE flag) AND amount > 10",
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


def calve(binary, warehouse, *statements):
    arguments = [binary, "--warehouse", str(warehouse), "-q"]
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


def check_case(binary, connection, version, mode, partitioning):
    comparisons = 0
    with tempfile.TemporaryDirectory() as folder:
        warehouse = pathlib.Path(folder)
        calve(binary, warehouse, f"""CREATE TABLE t ({COLUMNS}) {partitioning}
            TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = '{mode}')""")
        model, added = [], 0
        for statement, deletes in STATEMENTS:
            calve(binary, warehouse, statement)
            if deletes is None:
                count = statement.count("DATE '")
                model += [row(i) for i in range(added, added + count)]
                added += count
            else:
                model = [r for r in model if not deletes(r)]
            wanted = canonical_rows(model)
            metadata = current_metadata(warehouse)
            where = f"v{version} {mode} [{partitioning}] after {statement[:80]}"
            compare("PyIceberg", StaticTable.from_metadata(str(metadata)).scan().to_arrow().to_pylist(), wanted, where)
            result = connection.execute(f"SELECT * FROM iceberg_scan('{metadata}')")
            names = [column[0] for column in result.description]
            compare("DuckDB", [dict(zip(names, r)) for r in result.fetchall()], wanted, where)
            comparisons += 2
    return comparisons


def main():
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    connection = duckdb_connection()
    passed = 0
    for version in (2, 3):
        for mode in ("copy-on-write", "merge-on-read"):
            for partitioning in PARTITIONINGS:
                passed += check_case(binary, connection, version, mode, partitioning)
                print(f"ok: v{version} {mode} {partitioning or 'unpartitioned'}", flush=True)
    print(f"interop: {passed} passed, 0 failed")


if __name__ == "__main__":
    main()

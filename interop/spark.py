"""Reads tables with Spark and Iceberg's Java implementation.

The Iceberg runtime comes as a jar inside a Python package that lacks the Jackson classes it was relocated to, so these are
made from the ones that pyspark brings: the same classes under the package name that the runtime looks for.
"""

import importlib.util
import pathlib
import shutil
import struct
import zipfile

PACKAGE = b"com/fasterxml/jackson"
RELOCATED = b"org/apache/iceberg/shaded/com/fasterxml/jackson"

# Bytes after the tag of each constant of a class file that is no text (JVM specification, section 4.4).
CONSTANT_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}


def package_folder(name):
    return pathlib.Path(importlib.util.find_spec(name).origin).parent


def why_not():
    """Why Spark cannot run here, or None."""
    if shutil.which("java") is None:
        return "there is no Java"
    for package in ("pyspark", "snowpark_connect_deps_iceberg"):
        if importlib.util.find_spec(package) is None:
            return f"the Python package {package} is not installed"
    return None


def renamed(text):
    return text.replace(PACKAGE, RELOCATED).replace(PACKAGE.replace(b"/", b"."), RELOCATED.replace(b"/", b"."))


def relocated_class(data):
    """A class file with the package renamed in every text constant."""
    (count,) = struct.unpack_from(">H", data, 8)
    out, at, index = [data[:10]], 10, 1
    while index < count:
        tag = data[at]
        if tag == 1:
            (length,) = struct.unpack_from(">H", data, at + 1)
            text = renamed(data[at + 3:at + 3 + length])
            out.append(struct.pack(">BH", 1, len(text)) + text)
            at += 3 + length
        else:
            size = 1 + CONSTANT_SIZES[tag]
            out.append(data[at:at + size])
            at += size
            # A long or a double takes two places.
            index += tag in (5, 6)
        index += 1
    return b"".join(out) + data[at:]


def relocated_jackson(target):
    done = set()
    with zipfile.ZipFile(target, "w") as out:
        for part in ("annotations", "core", "databind"):
            (jar,) = (package_folder("pyspark") / "jars").glob(f"jackson-{part}-2.*.jar")
            with zipfile.ZipFile(jar) as source:
                for name in source.namelist():
                    if not name.startswith(PACKAGE.decode()) or not name.endswith(".class") or name in done:
                        continue
                    done.add(name)
                    out.writestr(renamed(name.encode()).decode(), relocated_class(source.read(name)))


def session(folder):
    """A Spark session; jars are made in `folder`."""
    from pyspark.sql import SparkSession

    jackson = folder / "relocated-jackson.jar"
    relocated_jackson(jackson)
    (runtime,) = (package_folder("snowpark_connect_deps_iceberg") / "jars").glob("iceberg-spark-runtime-3.5_2.12-*.jar")
    builder = SparkSession.builder.master("local[2]").config("spark.jars", f"{runtime},{jackson}")
    for name, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def catalog(spark, name, warehouse):
    """Makes the tables below `warehouse` known under the catalog `name`."""
    spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"spark.sql.catalog.{name}.type", "hadoop")
    spark.conf.set(f"spark.sql.catalog.{name}.warehouse", f"file:{warehouse}")


def rows(spark, query):
    """The rows of a query as dictionaries."""
    return [row.asDict(recursive=True) for row in spark.sql(query).collect()]

-- From a Parquet file to an Iceberg table with deleted rows. Run it from the root of the repository:
--   cargo run --release --features cli -- -f examples/quickstart.sql
-- The data: flights that left New York City in 2013 (fixtures/real). A flight without departure time was cancelled.

DROP TABLE IF EXISTS flights PURGE;

CREATE TABLE flights
PARTITIONED BY (month(flight_date))
TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')
AS SELECT * FROM 'fixtures/real/flights.parquet';

SELECT count(*) AS flights, count(*) FILTER (WHERE dep_time IS NULL) AS cancelled FROM flights;

-- 1. Delete the cancelled flights. Their positions go into deletion vectors; no data file is rewritten.
EXPLAIN DELETE FROM flights WHERE dep_time IS NULL;
DELETE FROM flights WHERE dep_time IS NULL;
SELECT count(*) AS flights FROM flights;

-- 2. Delete a month. Its files are dropped by metadata alone: the plan has no scan.
EXPLAIN DELETE FROM flights WHERE flight_date >= DATE '2013-06-01' AND flight_date < DATE '2013-07-01';
DELETE FROM flights WHERE flight_date >= DATE '2013-06-01' AND flight_date < DATE '2013-07-01';
SELECT count(*) AS flights FROM flights;

-- 3. Delete by a subquery: the flights of aircraft built before 1980.
EXPLAIN DELETE FROM flights AS f
WHERE EXISTS (SELECT 1 FROM 'fixtures/real/planes.parquet' AS p WHERE p.tailnum = f.tailnum AND p.year < 1980);
DELETE FROM flights AS f
WHERE EXISTS (SELECT 1 FROM 'fixtures/real/planes.parquet' AS p WHERE p.tailnum = f.tailnum AND p.year < 1980);

-- What is left, and where it lies.
SELECT count(*) AS flights, count(DISTINCT tailnum) AS planes, min(flight_date) AS first, max(flight_date) AS last FROM flights;
SELECT _partition.flight_date_month AS months_since_1970, count(DISTINCT _file) AS files, count(*) AS flights
FROM flights GROUP BY 1 ORDER BY 1;

"""What `test` runs: all rows go from one task to another. No Python runs beside the TaskManagers, whose image has none."""

import sys

from pyflink.table import EnvironmentSettings, TableEnvironment

# A stream begins only when both TaskManagers are there.
tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
# Few sums on the way to the last one.
for key, value in {"enabled": "true", "allow-latency": "1 s", "size": "1000000"}.items():
    tables.get_config().set("table.exec.mini-batch." + key, value)
tables.get_config().set("table.optimizer.agg-phase-strategy", "ONE_PHASE")
tables.execute_sql(
    "CREATE TABLE numbers (number BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '100000', "
    "'fields.number.kind' = 'sequence', 'fields.number.start' = '1', 'fields.number.end' = '100000')"
)
query = "SELECT SUM(total) FROM (SELECT number / 10, SUM(number) AS total FROM numbers GROUP BY number / 10)"
with tables.execute_sql(query).collect() as rows:
    total = [row[0] for row in rows][-1]
if total != 5000050000:
    sys.exit("%d is wrong" % total)

"""Groups numbers by the sum of their digits, which a function in Python works out, and checks what comes back.

    ./run flink --python examples/flink/digits.py [COUNT]

All numbers go from one task to another, half of them to another TaskManager.
"""

import collections
import sys

from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udf


def digits(number):
    return sum(map(int, str(number)))


def main(count):
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    # Else each task sends sums, a few rows.
    tables.get_config().set("table.optimizer.agg-phase-strategy", "ONE_PHASE")
    tables.execute_sql(
        "CREATE TABLE numbers (number BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '%d', "
        "'fields.number.kind' = 'sequence', 'fields.number.start' = '1', 'fields.number.end' = '%d')" % (count, count)
    )
    tables.create_temporary_function("digits", udf(digits, result_type=DataTypes.BIGINT()))
    query = "SELECT digits(number), COUNT(*), SUM(number) FROM numbers GROUP BY digits(number)"
    with tables.execute_sql(query).collect() as rows:
        found = {key: (numbers, total) for key, numbers, total in rows}

    expected = collections.defaultdict(lambda: (0, 0))
    for number in range(1, count + 1):
        numbers, total = expected[digits(number)]
        expected[digits(number)] = (numbers + 1, total + number)
    if found != expected:
        sys.exit("digits: %s is wrong, it should be %s" % (found, dict(expected)))
    print("sum of digits  numbers  their sum")
    for key, (numbers, total) in sorted(found.items(), key=lambda each: -each[1][0])[:5]:
        print("%13d %8d %10d" % (key, numbers, total))
    print("These and all others of %d groups of %d numbers are as they should be." % (len(found), count))


main(int(sys.argv[1]) if len(sys.argv) > 1 else 200000)

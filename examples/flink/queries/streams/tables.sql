-- Streams that are the same in every run: all columns follow from a number that counts up. The time of an event does, too, so
-- that windows close as fast as rows are made.
CREATE TABLE numbers (
  n BIGINT,
  happened AS TO_TIMESTAMP_LTZ(n / 10, 3),
  WATERMARK FOR happened AS happened - INTERVAL '0.001' SECOND -- ten rows have the same time
) WITH (
  'connector' = 'datagen', 'rows-per-second' = '1000000000', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '${last}'
);

-- As in Nexmark: of 50 events one is of a person, three are of an auction, and the others are of bids.
CREATE VIEW person AS
SELECT n / 50 AS id, CONCAT('person ', CAST(n / 50 AS STRING)) AS name, MOD(n * 7919, 50) AS city, happened
FROM numbers WHERE MOD(n, 50) = 0;

CREATE VIEW auction AS
SELECT n / 50 * 3 + MOD(n, 50) - 1 AS id, n / 50 - MOD(n * 31, 200) AS seller, MOD(n * 104729, 10) AS category, happened
FROM numbers WHERE MOD(n, 50) BETWEEN 1 AND 3;

CREATE VIEW bid AS
SELECT n / 50 * 3 - MOD(n * 7919, 300) AS auction, n / 50 - MOD(n * 104729, 1000) AS bidder,
  MOD(n * 1299709, 10000) AS price, CONCAT('https://auctions.example/item?bid=', CAST(n AS STRING)) AS url, happened
FROM numbers WHERE MOD(n, 50) > 3;

CREATE VIEW keyed AS
SELECT MOD(n * 7919, 1000) AS k, MOD(n, 97) AS v, happened FROM numbers;

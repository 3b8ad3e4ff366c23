-- The manner of Nexmark's query 5: of each window the auction with the most bids.
WITH counted AS (
  SELECT auction, window_start, window_end, COUNT(*) AS bids
  FROM TABLE(HOP(TABLE bid, DESCRIPTOR(happened), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
  GROUP BY auction, window_start, window_end),
most AS (
  SELECT MAX(bids) AS bids, window_start, window_end FROM counted GROUP BY window_start, window_end)
SELECT counted.auction, counted.bids, counted.window_end
FROM counted JOIN most
ON counted.window_start = most.window_start AND counted.window_end = most.window_end AND counted.bids = most.bids

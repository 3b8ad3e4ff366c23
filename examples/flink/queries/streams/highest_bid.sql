-- The manner of Nexmark's query 7: of each window the bids of the highest price.
SELECT bids.auction, bids.bidder, bids.price, bids.window_end
FROM (SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(happened), INTERVAL '10' SECOND))) bids
JOIN (
  SELECT MAX(price) AS price, window_start, window_end
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(happened), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end) highest
ON bids.window_start = highest.window_start AND bids.window_end = highest.window_end AND bids.price = highest.price

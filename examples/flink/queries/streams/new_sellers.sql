-- The manner of Nexmark's query 8: who has opened auctions in the window in which they came.
SELECT persons.id, persons.name, persons.window_end, sellers.auctions
FROM (SELECT id, name, window_start, window_end FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(happened), INTERVAL '10' SECOND))) persons
JOIN (
  SELECT seller, COUNT(*) AS auctions, window_start, window_end
  FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(happened), INTERVAL '10' SECOND))
  GROUP BY seller, window_start, window_end) sellers
ON persons.id = sellers.seller AND persons.window_start = sellers.window_start AND persons.window_end = sellers.window_end

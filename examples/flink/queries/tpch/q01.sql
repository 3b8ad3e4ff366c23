SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS quantity, SUM(l_extendedprice) AS base_price,
  SUM(l_extendedprice * (1 - l_discount)) AS discounted, SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charge,
  AVG(l_quantity) AS avg_quantity, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_discount, COUNT(*) AS n
FROM lineitem
WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus

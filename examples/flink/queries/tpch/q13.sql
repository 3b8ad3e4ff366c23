SELECT orders_of_one, COUNT(*) AS customers
FROM (
  SELECT c_custkey, COUNT(o_orderkey) AS orders_of_one
  FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
  GROUP BY c_custkey)
GROUP BY orders_of_one
ORDER BY customers DESC, orders_of_one DESC

# 1 000 rounds of connecting and closing leave nothing behind: counted by `rdma resource`, and open files of the system.
source tests/softroce/lib/suite.sh

readonly rounds=1000

one_device 2
rdma_over rxe 0
before=$(resources)
step "$rounds rounds"
TEST_ROUNDS=$rounds on_addresses 2 passes connect_rounds_test '*' 1
expect_resources "$before"
expect_clean rxe0

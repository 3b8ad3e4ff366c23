# The system tests over verbs, their nodes, in processes of their own, on the addresses of a network. What takes long is
# divided among the networks: memberships and lost nodes on one rxe device, all cases between four of them, and some of
# each between four siw devices (--quick: some of each between rxe devices, too).
source tests/softroce/lib/suite.sh

readonly some_cases='*/hash_join_verbs*:*/two_queries*:*/large_rows*:*/early_stop*:*/random_plan*'

step "rxe, four addresses of one device"
one_device 4
rdma_over rxe 0
before=$(resources)
on_addresses 4 passes membership_process_test 'Transports/*' 3
on_addresses 4 passes shuffle_trouble_test 'Phases/*killed*' 7
on_addresses 4 passes return_test 'Transports/*' 2
expect_resources "$before"
rdma link delete rxe0
ip link delete net0

step "rxe over a switch"
switched 4 9000
rdma_over rxe {1..4}
before=$(resources)
on_addresses 4 passes cases_processes_test "$(or_quick '*' "$some_cases")" "$(or_quick 16 6)"
expect_clean rxe{1..4}
expect_resources "$before"
for node in 1 2 3 4; do rdma link delete "rxe$node"; done

step "siw over a switch"
rdma_over siw {1..4}
before=$(resources)
on_addresses 4 passes membership_process_test 'Transports/*' 3
on_addresses 4 passes cases_processes_test "$some_cases" 6
on_addresses 4 passes shuffle_trouble_test 'Phases/*killed*_mid' 1
on_addresses 4 passes return_test 'Transports/*' 2
expect_resources "$before"

#include "lab/bench/sockets_baseline.h"

#include <sched.h>

#include "base/return_if_error.h"
#include "lab/bench/process_group.h"
#include "lab/bench/sockets_mesh.h"
#include "lab/bench/sockets_worker.h"

namespace faro::bench {
namespace {

uint32_t kernel_buffer_bytes(const SocketsOptions& options) {
  if (options.kernel_buffer_bytes != SocketsOptions::kAutomatic) {
    return options.kernel_buffer_bytes;
  }
  cpu_set_t processors;
  const bool one_processor =
      sched_getaffinity(0, sizeof(processors), &processors) == 0 && CPU_COUNT(&processors) == 1;
  return one_processor ? 128 * 1024 : 0;
}

/// One worker's thread from connecting to the last round.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
Status run_worker(const TwoStageJob& job, const SocketsOptions& options, GroupMember& member,
                  SocketsProcess& process, uint32_t local, const ListeningSocket& listener,
                  const std::vector<SocketAddress>& addresses) {
  const uint32_t self = member.global_worker(local);
  MeshOptions mesh;
  mesh.kernel_buffer_bytes = kernel_buffer_bytes(options);
  // Full buffers should go at once. Single rows should not: with Nagle, also the default of the
  // paper's Java sockets, that form costs half.
  mesh.no_delay = kForm == SocketsForm::tuned;
  FARO_ASSIGN_OR_RETURN(std::vector<MeshSocket> sockets,
                        connect_mesh(job, self, listener, addresses, mesh));
  SocketsWorker<Hash, kRowBytes, kForm> worker(job, options, self, process, member.progress(local));
  FARO_RETURN_IF_ERROR(worker.open(std::move(sockets)));
  return member.run_rounds(local, worker);
}

}  // namespace

Result<std::vector<RunFigures>> run_sockets_baseline(const TwoStageJob& job,
                                                     const SocketsOptions& sockets,
                                                     const RunOptions& options) {
  FARO_RETURN_IF_ERROR(job.validate());
  // Listening before the fork: every port is known to everyone, and no caller is too early.
  std::vector<ListeningSocket> listeners;
  std::vector<SocketAddress> addresses;
  for (uint32_t worker = 0; worker < job.worker_count(); ++worker) {
    const uint32_t process = worker / job.workers_per_process;
    FARO_ASSIGN_OR_RETURN(
        SocketAddress address,
        parse_socket_address(sockets.addresses[process % sockets.addresses.size()], 0));
    FARO_ASSIGN_OR_RETURN(ListeningSocket listener, listen_at(address, job.worker_count()));
    addresses.push_back(listener.address);
    listeners.push_back(std::move(listener));
  }
  auto body = [&](GroupMember& member) {
    SocketsProcess process(member.global_worker(0), job.workers_per_process);
    member.run_workers([&](uint32_t local) {
      const ListeningSocket& listener = listeners[member.global_worker(local)];
      return with_job_types(job, [&]<class Hash, uint32_t kRowBytes>() {
        constexpr auto kPaper = SocketsForm::paper;
        constexpr auto kTuned = SocketsForm::tuned;
        return sockets.form == kPaper
                   ? run_worker<Hash, kRowBytes, kPaper>(job, sockets, member, process, local,
                                                         listener, addresses)
                   : run_worker<Hash, kRowBytes, kTuned>(job, sockets, member, process, local,
                                                         listener, addresses);
      });
    });
    return Status::Ok();
  };
  return run_group(group_options(job.process_count, job.workers_per_process, options),
                   job.expectation(), options, body);
}

}  // namespace faro::bench

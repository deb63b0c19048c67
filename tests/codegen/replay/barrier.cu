// Record, claim, Peers 2, Comm, epoch_at, flag_at 2, fence, load_flag, store_flag, global_timer, open_comm 2, close_comm, signal 10, give_up 2, await_relaxed, await, wait 10
extern "C" __global__ void __launch_bounds__(32, 1) barrier(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step) {
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, 0);
  if (!wait(comm, peers, 0)) return;
  close_comm(comm);
}

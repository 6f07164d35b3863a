// Drive the solvers over a batch: slots refilled as they finish, threads that
// take the next problem from one counter. A problem's answer depends on nothing
// but the problem: not on its neighbours in the batch, nor on the threads.

// Problems still to do, handed out one by one; `todo` null: all of them.
class Queue {
 public:
  Queue(std::int64_t size, const std::int64_t* todo) : size_(size), todo_(todo) {}
  std::int64_t next() {
    const std::int64_t at = next_.fetch_add(1, std::memory_order_relaxed);
    if (at >= size_) return -1;
    return todo_ ? todo_[at] : at;
  }

 private:
  const std::int64_t size_;
  const std::int64_t* todo_;
  std::atomic<std::int64_t> next_{0};
};

template <class L, class Solver>
void work(Solver& solver, const Answer& answer, Queue& queue) {
  const auto refill = [&](int s) {
    const std::int64_t l = queue.next();
    if (l >= 0) solver.load(s, l);
    else solver.slots.problem[s] = -1;
  };
  for (int s = 0; s < L::problems; ++s) refill(s);
  while (solver.slots.busy()) {
    solver.step();
    solver.harvest([&](int s, Status status) {
      const std::int64_t l = solver.slots.problem[s];
      answer.n_iter[l] += solver.n_iter[s];
      answer.status[l] = status;
      answer.method[l] = static_cast<std::int8_t>(solver.method(s));
      if (status != Status::unsolved && solver.is_useful(s)) solver.write(answer, s);
      else write_nothing(solver.slots.batch, answer, l);
      refill(s);
    });
  }
}

// Run one worker per thread; the first exception, such as no memory, comes back.
template <class Worker>
void in_threads(int threads, Worker worker) {
  if (threads <= 1) {
    worker();
    return;
  }
  std::vector<std::thread> pool;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(threads));
  const auto guarded = [&](int i) {
    try {
      worker();
    } catch (...) {
      errors[static_cast<std::size_t>(i)] = std::current_exception();
    }
  };
  for (int i = 1; i < threads; ++i) pool.emplace_back(guarded, i);
  guarded(0);
  for (std::thread& thread : pool) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

template <class L>
void run(const Batch& batch, const Answer& answer) {
  std::vector<std::int64_t> unsolved;
  const bool first = batch.method != Method::interior_point;
  if (first) {
    const Method method = batch.method == Method::paper ? Method::paper : Method::frank_wolfe;
    Queue queue(batch.m, nullptr);
    in_threads(batch.threads, [&] {
      FrankWolfe<L> solver(batch, method);
      work<L>(solver, answer, queue);
    });
    if (batch.method != Method::automatic) return;
    for (std::int64_t l = 0; l < batch.m; ++l)
      if (answer.status[l] == Status::unsolved) unsolved.push_back(l);
    if (unsolved.empty()) return;
  }
  Queue queue(first ? static_cast<std::int64_t>(unsolved.size()) : batch.m,
              first ? unsolved.data() : nullptr);
  in_threads(batch.threads, [&] {
    InteriorPoint<L> solver(batch);
    work<L>(solver, answer, queue);
  });
}

// Small problems ride together; a large one fills the lanes by itself.
void solve(const Batch& batch, const Answer& answer) {
  if (batch.together) run<Lanes>(batch, answer);
  else run<Rows>(batch, answer);
}

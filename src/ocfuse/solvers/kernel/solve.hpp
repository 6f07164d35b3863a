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

// Keep the answer of slot s if it is proved or better than what stands there; at
// first that is w = 0 with alpha = 0, whose gap is 1.
template <class Solver>
OCFUSE_CALLED void record(const Solver& solver, const Answer& answer, int s, Status status) {
  const Batch& batch = solver.slots.batch;
  const std::int64_t l = solver.slots.problem[s];
  double standing = 1.0;
  if (answer.status[l] == Status::untouched) {
    for (std::int64_t j = 0; j < batch.d; ++j) answer.w[l * batch.d + j] = 0;
    for (std::int64_t i = 0; i < batch.k; ++i) answer.alpha[l * batch.k + i] = 0;
    answer.primal[l] = solver.slots.total[s];
    answer.dual[l] = 0;
  } else {
    const double total = solver.slots.total[s] > 0 ? solver.slots.total[s] : 1.0;
    standing = relative_gap(answer.primal[l] / total, answer.dual[l] / total);
  }
  if (status == Status::solved || (status != Status::lost && solver.gap_of(s) < standing)) {
    solver.write(answer, s);
    answer.method[l] = static_cast<std::int8_t>(solver.method(s));
  } else if (answer.status[l] == Status::untouched) {
    answer.method[l] = static_cast<std::int8_t>(solver.method(s));
  }
  answer.status[l] = status;
  answer.n_iter[l] += solver.n_iter[s];
}

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
      record(solver, answer, s, status);
      refill(s);
    });
  }
}

template <class Worker>
void in_threads(int threads, Worker worker) {
  ocfuse::in_threads(threads, [](void* what) { (*static_cast<Worker*>(what))(); }, &worker);
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
      if (answer.status[l] != Status::solved) unsolved.push_back(l);
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

// Take the lock of Python back, in a file of its own before any other header.
//
// A program that ends while another thread computes, as by Ctrl-C, lets that thread end where it
// asks for the lock: up to Python 3.13 by pthread_exit, which unwinds the stack. That must not pass
// through C++: arrays would be given back without the lock, and a library of C++ that is linked
// into a wheel cannot be unwound by that of the system. Such a thread waits for the end instead.
#pragma once

#ifndef _WIN32
// glibc's handlers for C: they stop the unwinding here, while those for C++ are part of it.
#undef __EXCEPTIONS
#include <pthread.h>
#include <unistd.h>
#endif

#include <Python.h>

namespace ocfuse {
namespace python {

#ifdef _WIN32
void take_lock(PyThreadState* state) { PyEval_RestoreThread(state); }
#else
extern "C" {
static void wait_for_the_end(void*) {
  for (;;) pause();
}
}

void take_lock(PyThreadState* state) {
  pthread_cleanup_push(wait_for_the_end, nullptr);
  PyEval_RestoreThread(state);
  pthread_cleanup_pop(0);
}
#endif

}  // namespace python
}  // namespace ocfuse

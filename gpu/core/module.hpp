#pragma once

#include "gpu/core/error.hpp"

#include <string>
#include <utility>

namespace poisson {

/// Loads lib`name`.so: from the folder of the program, or lib beside that folder, or where an installation has the libraries
/// (POISSON_MODULES counts from the folder of the program), or from where the system looks for libraries.
/// With `visible`, libraries that are loaded later find its symbols. Returns its function `name`; null, with the reason in
/// `missing`, where there is none. The library is never unloaded.
[[nodiscard]] void* load_module(std::string const& name, bool visible, std::string& missing);

/// To be called before a module is loaded whose libraries bring a BLAS. OpenBLAS looks for memory again and again, as it is loaded
/// and at its first call: where the limit on virtual memory leaves it none it never ends. Under such a limit it is loaded now,
/// alone: other libraries and MPI have not taken that memory yet. Throws EnvironmentError where there is too little.
void load_blas();

/// A part of the program in a library of its own, which is loaded when such an object is made. It has what needs libraries that
/// take long to load. Its one entry, extern "C" and named as the library, returns what it can do: `Functions`, a struct of pointers
/// to functions. poisson_module (tools/poisson_settings.cmake) builds it.
template <class Functions>
class Module {
public:
  using Entry = Functions const* (*)();

  /// `linked`: the entry where it is linked, as in tests, declared weak; else null. `purpose` is what the library is for, in
  /// messages. Throws what load_blas throws, where its libraries bring a BLAS.
  Module(std::string const& name, Entry linked, std::string purpose, bool visible = false, bool brings_blas = false)
      : purpose_(std::move(purpose)) {
    if (brings_blas && linked == nullptr)
      load_blas();
    Entry const entry = linked != nullptr ? linked : reinterpret_cast<Entry>(load_module(name, visible, missing_));
    functions_ = entry != nullptr ? entry() : nullptr;
  }

  /// Why it cannot be used; empty where it can.
  [[nodiscard]] std::string const& missing() const { return missing_; }
  /// Throws EnvironmentError, which says what is missing, where the library cannot be loaded.
  [[nodiscard]] Functions const& functions() const {
    if (functions_ == nullptr)
      throw EnvironmentError("the library for " + purpose_ + " cannot be loaded; it belongs beside the program: " + missing_);
    return *functions_;
  }

private:
  std::string purpose_, missing_;
  Functions const* functions_ = nullptr;
};

}  // namespace poisson

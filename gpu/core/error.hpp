#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace poisson {

/// The input is wrong: a configuration value, a file's content, a matrix that a format cannot hold. Exit code 1.
/// `key` is the YAML key path it came from ("problem.boundary[1].ids"), or empty; the application adds file, line and column.
class InputError : public std::runtime_error {
public:
  explicit InputError(std::string const& message) : std::runtime_error(message) {}
  InputError(std::string key, std::string const& message) : std::runtime_error(message), key_(std::move(key)) {}
  [[nodiscard]] std::string const& key() const noexcept { return key_; }

private:
  std::string key_;
};

/// The environment does not allow it: no device, out of memory, a file that cannot be read or written. Exit code 3.
class EnvironmentError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Not enough memory on the host or a device. Callers that can do with less catch this error.
class OutOfMemoryError : public EnvironmentError {
public:
  using EnvironmentError::EnvironmentError;
};

/// Thrown by long stages (mesh, assembly) when an interrupt was requested; see core/interrupt.hpp.
class Interrupted : public std::runtime_error {
public:
  Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace poisson

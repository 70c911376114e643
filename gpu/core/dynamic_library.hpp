#pragma once

#include <dlfcn.h>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>

namespace poisson {

/// A library found at run time, so that the program starts on machines that lack it. It is never unloaded: a CUDA context, say,
/// keeps code of it.
class DynamicLibrary {
public:
  /// The first of `names` that can be loaded; `visible` to libraries that are loaded later, too.
  DynamicLibrary(std::string title, std::initializer_list<char const*> names, bool visible = false) : title_(std::move(title)) {
    for (char const* const name : names) {
      library_ = dlopen(name, RTLD_NOW | (visible ? RTLD_GLOBAL : RTLD_LOCAL));
      if (library_ != nullptr)
        break;
      if (missing_.empty())
        missing_ = title_ + " cannot be loaded: " + dlerror();
    }
    if (library_ != nullptr)
      missing_.clear();
  }

  /// Why the library, or a function of it, is not there; empty when all are.
  [[nodiscard]] std::string const& missing() const { return missing_; }

  template <class Function>
  void find(Function& function, char const* name) {
    static_assert(std::is_pointer_v<Function>);
    function = reinterpret_cast<Function>(address_of(name));
  }
  /// Returns the address of a function or a variable of the library; null where it is missing.
  [[nodiscard]] void* address_of(char const* name) {
    if (library_ == nullptr)
      return nullptr;
    void* const symbol = dlsym(library_, name);
    if (symbol == nullptr && missing_.empty())
      missing_ = title_ + " here is another version than was built for: it has no " + name;
    return symbol;
  }

private:
  std::string title_, missing_;
  void* library_ = nullptr;
};

/// An object of a library that is destroyed with this.
template <class Handle, class Destroy>
class OwnedHandle {
public:
  explicit OwnedHandle(Destroy destroy) : destroy_(destroy) {}
  OwnedHandle(OwnedHandle const&) = delete;
  OwnedHandle& operator=(OwnedHandle const&) = delete;
  ~OwnedHandle() {
    if (handle != nullptr)
      static_cast<void>(destroy_(handle));
  }
  Handle handle = nullptr;

private:
  Destroy destroy_;
};

}  // namespace poisson

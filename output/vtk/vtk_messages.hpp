#pragma once

#include <vtkNew.h>
#include <vtkOutputWindow.h>
#include <vtkStringOutputWindow.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace poisson::output {

/// What VTK says while a file is read.
class VtkMessages {
public:
  VtkMessages() { vtkOutputWindow::SetInstance(window_); }
  VtkMessages(VtkMessages const&) = delete;
  VtkMessages& operator=(VtkMessages const&) = delete;
  ~VtkMessages() { vtkOutputWindow::SetInstance(nullptr); }

  /// Errors, or warnings, each once and without the places in VTK's source.
  [[nodiscard]] std::vector<std::string> all(bool errors) const {
    std::vector<std::string> found;
    std::string const text = window_->GetOutput();
    // "ERROR: In FILE, line N\nvtkReader (0x55...): MESSAGE\n\n"; also "Warning: In", "Generic Warning: In".
    for (std::size_t at = 0; at < text.size();) {
      std::size_t const end = std::min(text.find("\n\n", at), text.size());
      std::string const one = text.substr(at, end - at);
      at = std::min(text.find_first_not_of("\r\n", end), text.size());
      std::size_t const line = one.find('\n');
      std::string message = line == std::string::npos ? one : one.substr(line + 1);
      if (std::size_t const object = message.find("): "); message.starts_with("vtk") && object != std::string::npos)
        message.erase(0, object + 3);
      for (char& c : message)
        if (c == '\n' || c == '\r')
          c = ' ';
      bool const is_error = one.find("ERROR: In") != std::string::npos;
      if (is_error == errors && found.size() < 3 && std::find(found.begin(), found.end(), message) == found.end())
        found.push_back(message.substr(0, 200));
    }
    return found;
  }

private:
  vtkNew<vtkStringOutputWindow> window_;
};

}  // namespace poisson::output

#include "core/status.h"

namespace sundog {

std::string to_string(const Error& error) {
  std::string text;
  if (error.position) {
    text = error.position->file;
    if (error.position->line > 0) {
      text += ":" + std::to_string(error.position->line);
      if (error.position->column > 0) text += ":" + std::to_string(error.position->column);
    }
    text += ": ";
  }
  text += "error: " + error.message;
  if (!error.hint.empty()) text += "\n  hint: " + error.hint;
  return text;
}

}  // namespace sundog

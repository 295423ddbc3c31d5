// Writes small ONNX models for the tests of the lint. No header of ONNX is
// shown: only the .cc file knows them.
#ifndef ATTNGUARD_TESTS_CI_LINT_ONNX_BUILDER_H_
#define ATTNGUARD_TESTS_CI_LINT_ONNX_BUILDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace attnguard::lint_test {

constexpr int kFloat = 1, kInt64 = 7, kBool = 9, kHalf = 10;

using Value = std::string;
using Dims = std::vector<std::int64_t>;  // Negative: symbolic, equal numbers
                                         // being the same length.
using AttributeValue = std::variant<std::int64_t, double, std::string, Dims>;
using Attributes = std::map<std::string, AttributeValue>;

class Builder {
 public:
  explicit Builder(int opset = 17);
  Builder(Builder&&);
  ~Builder();

  Value input(const std::string& name, const Dims& dims, int type = kFloat);
  void output(const Value& value);
  // The same under another name, with its shape and type said.
  void output(const Value& value, const std::string& name, const Dims& dims,
              int type = kFloat);
  // Raw bytes of the type; fp16 by rounding.
  Value constant(const Dims& dims, const std::vector<double>& values,
                 int type = kFloat, const std::string& name = "");
  // A Constant node in place of an initialiser.
  Value constant_node(const Dims& dims, const std::vector<double>& values,
                      int type = kFloat);
  Value scalar(double value, int type = kFloat) {
    return constant({}, {value}, type);
  }
  Value vector(const Dims& values) {
    return constant({static_cast<std::int64_t>(values.size())},
                    {values.begin(), values.end()}, kInt64);
  }
  // Gives the output's name; the node is called "op_N" or `name`.
  Value op(const std::string& type, const std::vector<Value>& inputs,
           const Attributes& attributes = {}, const std::string& name = "",
           const std::string& domain = "");
  // The same for operators with several outputs.
  std::vector<Value> op_outputs(const std::string& type,
                                const std::vector<Value>& inputs,
                                std::size_t count, const Attributes& attributes,
                                const std::string& domain = "");
  // Operators of a domain other than ai.onnx need this.
  void import_domain(const std::string& domain);
  // Moves all nodes and initialisers made so far into the then-branch of an
  // If; inputs stay outside.
  void wrap_in_if(const Value& result);
  // Puts the data of an initialiser into a file beside the model.
  void make_external(const Value& value, const std::string& location);
  // Cuts the raw data of an initialiser.
  void corrupt(const Value& value, std::size_t bytes);

  std::string bytes() const;
  // Writes the model to a temporary folder, and gives its path.
  std::string write(const std::string& name = "model.onnx") const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string temporary_folder();
std::string write_file(const std::string& name, const std::string& bytes);

}  // namespace attnguard::lint_test

#endif  // ATTNGUARD_TESTS_CI_LINT_ONNX_BUILDER_H_

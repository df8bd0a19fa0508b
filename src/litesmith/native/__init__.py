"""Compiling: loops as C functions of their own, kept on disk.

compile.py        functions compiled when first asked for, kept under a name made of all sources
cpu.py            what this processor can do, as far as kernels differ by it
emit_llvm.py      vectors as LLVM instructions
loops_between.py  what stands between the runtime and a kernel
sealed_file.py    files that are believed only where this user wrote them
tiles.py          emitted functions, memory, threads, calls
user_cache.py     the platform's folder for what can be made again

Numba by itself looks only at the file that a function is in, and writes beside it. Here compiled
code is kept in the user's cache folder, under a digest of all sources of `native` and `kernels`;
code of other sources is not loaded, and is removed. Nothing is loaded that is not sealed with the
user's own key.
"""

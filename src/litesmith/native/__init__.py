"""Compiling: loops as separate C functions, kept on disk.

compile.py        functions compiled on first use, kept under a digest of all sources
cpu.py            the features of this processor that kernels depend on
emit_llvm.py      vectors as LLVM instructions
loops_between.py  the code between the runtime and a kernel
sealed_file.py    files that are trusted only if this user wrote them
tiles.py          emitted functions, memory, threads, calls
user_cache.py     the platform's folder for files that can be made again

Numba by itself checks only the file that a function is in, and writes beside it. Here compiled code
is kept in the user's cache folder, under a digest of all sources of `native` and `kernels`; code of
other sources is not loaded, and is removed. Only files sealed with the user's own key are loaded.
"""

"""The model in memory, and what is known of every kind of op.

types           Model, Graph, Op, Tensor, Quant: frozen values
ops             the op table and questions to it; op_row explains a row, op_rows holds the rows,
                versions the integer kernels of the runtime
shapes, macs    the rules that rows name; shapes_by_index where values decide, infer and window for
                both
build, edit     models in code, and new graphs from old ones
check           the rules that every valid model obeys
match           chains of ops; partition: parts of a graph that can run as one
late_sizes      sizes that only a run decides; softmax_scores: the scores behind an output
model_text      a model as text
"""

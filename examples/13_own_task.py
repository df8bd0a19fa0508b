"""A task of your own: `litesmith eval M --data scenes.npz --task 13_own_task.py:Counting`."""

import numpy as np

import litesmith


class Counting:
    better = -1  # a lower score is better

    def items(self, source):  # what the data holds: pairs of a name and anything
        held = np.load(source)
        return [(str(n), (held["x"][n], held["y"][n])) for n in range(len(held["x"]))]

    def inputs(self, item, shapes):  # an array for each input of the model
        return [item[0].reshape(shapes[0])]

    def score(self, outputs, item):  # how far the model is off
        return abs(float(outputs[0].ravel()[0]) - item[1])


if __name__ == "__main__":
    spots = (np.random.default_rng(0).random((50, 8, 8, 1)) < 0.1).astype(np.float32)
    np.savez("scenes.npz", x=spots, y=spots.sum(axis=(1, 2, 3)))
    b = litesmith.Builder()
    litesmith.save(b.model(b.op("SUM", b.input("scene", (1, 8, 8, 1)), [1, 2, 3])), "model.tflite")
    print("counted", litesmith.evaluate("model.tflite", "scenes.npz", task=Counting))

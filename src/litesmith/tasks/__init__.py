"""What models are for: how data is read, how outputs become answers, how these are scored.

annotations.py   boxes and points as COCO, Pascal VOC and YOLO keep them
boxes.py         overlaps, and one of many boxes that show the same thing
class_names.py   which class of a model is which class of some data
detection.py     what is in an image, and where
detectors.py     how detectors answer: SSD, YOLO, BlazeFace, CenterNet
image_files.py   opening images, of the formats that are read
keypoints.py     where the parts of a body are
matching.py      which answers of a detector are right
outlines.py      shapes of things as COCO keeps them, drawn
questions.py     the words of a paragraph that answer a question
segmentation.py  the class of every pixel
sound.py         waves, and how loud each pitch is
speech.py        transcripts
task.py          what a task is: items, a scorer of answers, settings
task_table.py    the tasks there are, and which one data and a model are for
texts.py         tables of sentences, words as numbers; text classification
user_task.py     a task of the user's own

A task is a value of the table: it reads a source, and its scorer turns outputs into rows of numbers
that the metrics of `accuracy` add up. What runs the model knows nothing of tasks.
"""

"""What models are for: how data is read, how outputs become answers, and how answers are scored.

annotations.py   boxes and points as COCO, Pascal VOC and YOLO store them
boxes.py         overlaps, and the best of several boxes around one object
class_names.py   matches the classes of a model with the classes of some data
detection.py     objects in an image, and their places
detectors.py     output layouts of detectors: SSD, YOLO, BlazeFace, CenterNet
image_files.py   opening images of the supported formats
keypoints.py     the places of body parts
matching.py      which answers of a detector are right
outlines.py      outlines of objects as COCO stores them, drawn
questions.py     the words of a paragraph that answer a question
segmentation.py  the class of every pixel
sound.py         waves, and the loudness of each pitch
speech.py        transcripts
task.py          what a task is: items, a scorer of answers, settings
task_table.py    the table of tasks, and which one data and a model are for
texts.py         tables of sentences, tokens; text classification
user_task.py     a task that the user wrote

A task is a value of the table: it reads a source, and its scorer turns outputs into rows of numbers
that the metrics of `accuracy` add up. The code that runs a model knows nothing of tasks.
"""

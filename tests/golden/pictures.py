#!/usr/bin/env python3
"""Writes the picture files of tests/golden/pictures, and what Pillow reads from them.

    python pictures.py FOLDER

NAME.EXT is a picture file; NAME.EXT.ppm has its pixels as RGB, and NAME.EXT.pgm, of some, as grey, by convert().
source.ppm and source.pgm are a picture, and source_WxH.ppm and .pgm what Image.resize((W, H), BILINEAR) makes of them.
source_pad_WxH.ppm is what ImageOps.pad() makes of it, and source_crop_WxH.ppm what torchvision's Resize and CenterCrop
do, which are Image.resize() and Image.crop() for a PIL image; for a square that is their computation of sizes.
Written with Pillow 13.0.0 and its libjpeg-turbo 3.2.0 and libwebp 1.6.0.
"""
import math
import pathlib
import sys

from PIL import Image, ImageOps

WIDTH, HEIGHT = 37, 29
SIZES = [(5, 7), (37, 10), (16, 29), (36, 28), (50, 41), (1, 1)]
FITTED = [(16, 16), (9, 31), (40, 12), (50, 50), (1, 1), (60, 2)]
ALSO_AS_GREY = ("rgb.png", "sampled.jpg", "lossless.webp", "cmyk.jpg")


def pixel(x, y):
    """Smooth colours with a sharp edge, so that chroma that is sampled coarsely shows."""
    wave = math.sin(x / 4.0) * math.cos(y / 5.0)
    red, green, blue = 128 + 100 * wave, 255 * x / WIDTH, 255 * y / HEIGHT
    return (int(red), int(green), int(blue)) if (x - 20) ** 2 + (y - 12) ** 2 > 60 else (250, 20, 60)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    colour = Image.new("RGB", (WIDTH, HEIGHT))
    colour.putdata([pixel(x, y) for y in range(HEIGHT) for x in range(WIDTH)])
    grey = colour.convert("L")
    files = {
        "rgb.png": (colour, {}),
        "grey.png": (grey, {}),
        "palette.png": (colour.quantize(16), {}),
        "sampled.jpg": (colour, {"quality": 85, "subsampling": "4:2:0"}),
        "half.jpg": (colour, {"quality": 70, "subsampling": "4:2:2"}),
        "full.jpeg": (colour, {"quality": 95, "subsampling": "4:4:4"}),
        "progressive.jpg": (colour, {"quality": 80, "progressive": True}),
        "grey.jpg": (grey, {"quality": 85}),
        "cmyk.jpg": (colour.convert("CMYK"), {"quality": 90}),
        "rotated.jpg": (colour, {"quality": 85, "exif": orientation(6)}),
        "lossy.webp": (colour, {"quality": 80}),
        "lossless.webp": (colour, {"lossless": True}),
    }
    for name, (picture, options) in files.items():
        picture.save(folder / name, **options)
        with Image.open(folder / name) as read:
            read.convert("RGB").save(folder / f"{name}.ppm")
            if name in ALSO_AS_GREY:
                read.convert("L").save(folder / f"{name}.pgm")
    for picture, ending in ((colour, "ppm"), (grey, "pgm")):
        picture.save(folder / f"source.{ending}")
        for width, height in SIZES:
            resized = picture.resize((width, height), Image.Resampling.BILINEAR)
            resized.save(folder / f"source_{width}x{height}.{ending}")
    for width, height in FITTED:
        padded = ImageOps.pad(colour, (width, height), method=Image.Resampling.BILINEAR, color=(0, 0, 0))
        padded.save(folder / f"source_pad_{width}x{height}.ppm")
        cropped(colour, width, height).save(folder / f"source_crop_{width}x{height}.ppm")
    transparent = colour.copy()
    transparent.putalpha(grey)
    transparent.save(folder / "transparent.webp", lossless=True, exact=True)
    frames = [colour, colour.transpose(Image.Transpose.FLIP_LEFT_RIGHT)]
    frames[0].save(folder / "animation.webp", save_all=True, append_images=frames[1:], quality=50)


def cropped(picture, width, height):
    """Scales until the picture just covers the size, and cuts out the middle."""
    if height * picture.width > width * picture.height:
        scaled = (int(height * picture.width / picture.height), height)
    else:
        scaled = (width, int(width * picture.height / picture.width))
    left, top = (int(round((whole - part) / 2.0)) for whole, part in zip(scaled, (width, height)))
    resized = picture.resize(scaled, Image.Resampling.BILINEAR)
    return resized.crop((left, top, left + width, top + height))


def orientation(value):
    exif = Image.Exif()
    exif[0x0112] = value
    return exif


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

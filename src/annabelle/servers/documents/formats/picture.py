"""Pictures: what their heads say. No pixel is unpacked."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import cast

from PIL import ExifTags, Image

from annabelle.core.errors import InvalidArguments, TooLarge
from annabelle.servers.documents.questions import PictureAnswer

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
_MAX_PIXELS = 500_000_000


def picture_facts(data: bytes) -> PictureAnswer:
    """Size, format, and what the camera wrote."""
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            if image.width * image.height > _MAX_PIXELS:
                raise TooLarge(f"The picture claims {image.width} x {image.height} pixels.", field="path")
            return _facts(image)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise TooLarge("The picture claims far too many pixels.", field="path") from error
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        raise InvalidArguments(
            "The file is not a picture that can be read.", hint=f"Use {', '.join(_FORMATS)}.", field="path"
        ) from error


def _facts(image: Image.Image) -> PictureAnswer:
    exif = image.getexif()
    own = cast("Mapping[int, object]", exif)
    detail = cast("Mapping[int, object]", exif.get_ifd(ExifTags.IFD.Exif))
    gps = cast("Mapping[int, object]", exif.get_ifd(ExifTags.IFD.GPSInfo))
    orientation = own.get(ExifTags.Base.Orientation)
    makers = (_said(own.get(ExifTags.Base.Make)), _said(own.get(ExifTags.Base.Model)))
    other = {
        "exposure": _said(detail.get(ExifTags.Base.ExposureTime)),
        "aperture": _said(detail.get(ExifTags.Base.FNumber)),
        "iso": _said(detail.get(ExifTags.Base.ISOSpeedRatings)),
        "software": _said(own.get(ExifTags.Base.Software)),
        "artist": _said(own.get(ExifTags.Base.Artist)),
        "copyright": _said(own.get(ExifTags.Base.Copyright)),
        "description": _said(own.get(ExifTags.Base.ImageDescription)),
    }
    return PictureAnswer(
        format=image.format or "?",
        width=image.width,
        height=image.height,
        mode=image.mode,
        frames=int(getattr(image, "n_frames", 1)),
        taken=_said(detail.get(ExifTags.Base.DateTimeOriginal)) or _said(own.get(ExifTags.Base.DateTime)),
        camera=" ".join(filter(None, makers)) or None,
        lens=_said(detail.get(ExifTags.Base.LensModel)),
        orientation=orientation if isinstance(orientation, int) else None,
        latitude=_degrees(gps.get(ExifTags.GPS.GPSLatitude), gps.get(ExifTags.GPS.GPSLatitudeRef), "S", 90),
        longitude=_degrees(gps.get(ExifTags.GPS.GPSLongitude), gps.get(ExifTags.GPS.GPSLongitudeRef), "W", 180),
        altitude=_number(gps.get(ExifTags.GPS.GPSAltitude)),
        other={name: value for name, value in other.items() if value is not None},
    )


def _said(value: object) -> str | None:
    if value is None:
        return None
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    return "".join(char for char in text if char.isprintable()).strip()[:200] or None


def _number(value: object) -> float | None:
    try:
        number = float(cast("float", value))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    return round(number, 6) if abs(number) < 1e9 else None


def _degrees(value: object, where: object, negative: str, most: float) -> float | None:
    """Degrees, minutes and seconds as one number; nonsense is left out."""
    if not isinstance(value, tuple):
        return None
    parts = [_number(part) for part in cast("tuple[object, ...]", value)]
    if len(parts) != 3 or any(part is None for part in parts):
        return None
    degrees = sum(cast("float", part) / 60**power for power, part in enumerate(parts))
    if not 0 <= degrees <= most:
        return None
    return round(-degrees if _said(where) == negative else degrees, 6)

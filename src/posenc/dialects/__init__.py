"""How model families encode position: read_config turns a config.json into a PositionSpec."""

from posenc.dialects.errors import ConfigError as ConfigError
from posenc.dialects.read import read_config as read_config
from posenc.dialects.spec import Layer as Layer
from posenc.dialects.spec import PositionSpec as PositionSpec
from posenc.dialects.spec import Remark as Remark
from posenc.dialects.spec import Rotation as Rotation
from posenc.dialects.spec import Use as Use

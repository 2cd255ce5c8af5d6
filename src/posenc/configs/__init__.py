"""How model families encode position: read_config turns a config.json into a PositionSpec."""

from posenc.configs.errors import ConfigError as ConfigError
from posenc.configs.read import read_config as read_config
from posenc.configs.read import spec_of as spec_of
from posenc.configs.spec import Layer as Layer
from posenc.configs.spec import PositionSpec as PositionSpec
from posenc.configs.spec import Remark as Remark
from posenc.configs.spec import Rotation as Rotation
from posenc.configs.spec import Use as Use

from authlib.oauth2.rfc6749 import AuthorizationServer as AuthorizationServer
from authlib.oauth2.rfc6749 import OAuth2Error as OAuth2Error
from authlib.oauth2.rfc6749 import OAuth2Request as OAuth2Request

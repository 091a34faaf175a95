// Another provider that nobody here wrote, set up to be asked what ours is asked.
import { randomBytes } from 'node:crypto'
import { exportJWK, generateKeyPair } from 'jose'
import { errors, Provider } from 'oidc-provider'

const { PORT, RESOURCE, SERVER_ID, SERVER_SECRET } = process.env
const { privateKey } = await generateKeyPair('ES256', { extractable: true })
const provider = new Provider(`http://127.0.0.1:${PORT}`, {
  clients: [{
    client_id: SERVER_ID, client_secret: SERVER_SECRET, redirect_uris: [], response_types: [], grant_types: [],
    id_token_signed_response_alg: 'ES256',
  }],
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  cookies: { keys: [randomBytes(16).toString('hex')] },
  jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: 'one' }] },
  pkce: { required: () => true },
  scopes: ['openid', 'offline_access'],
  features: {
    devInteractions: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    registration: { enabled: true },
    revocation: { enabled: true, allowedPolicy: () => true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo(_ctx, url) {
        if (url !== RESOURCE) throw new errors.InvalidTarget()
        return { scope: 'strict:read strict:write', audience: url, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } } }
      },
    },
  },
})
provider.listen(Number(PORT), '127.0.0.1', () => console.log('listening'))

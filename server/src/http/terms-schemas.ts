import type * as Wire from '@farthing/sdk'
import Type from 'typebox'
import { closed, of } from './schemas.ts'

const SignedOffer = Type.Object(
  { format: Type.Literal('jws'), acceptIndex: Type.Integer(), signature: Type.String() },
  closed,
)
const SignedOffers = Type.Object(
  { info: Type.Object({ offers: Type.Array(SignedOffer) }, closed), schema: Type.Object({}) },
  closed,
)

export const TermsSchema = of<Wire.PaymentRequired>()(
  Type.Object(
    {
      x402Version: Type.Literal(2),
      error: Type.Optional(Type.String()),
      resource: Type.Object(
        { url: Type.String(), description: Type.String(), mimeType: Type.String() },
        closed,
      ),
      accepts: Type.Array(
        Type.Object(
          {
            scheme: Type.Literal('exact'),
            network: Type.String({ description: 'CAIP-2 identifier.' }),
            asset: Type.String({ description: 'Token contract address.' }),
            amount: Type.String({ description: 'Integer amount in the token’s smallest unit.' }),
            payTo: Type.String(),
            maxTimeoutSeconds: Type.Integer(),
            extra: Type.Union(
              [
                Type.Object({ name: Type.String(), version: Type.String() }, closed),
                Type.Object({ feePayer: Type.String(), memo: Type.String() }, closed),
              ],
              {
                description:
                  'What else the payer signs. EVM: the token’s EIP-712 domain. Solana: the fee payer and a memo.',
              },
            ),
          },
          closed,
        ),
      ),
      extensions: Type.Optional(Type.Object({ 'offer-receipt': SignedOffers }, closed)),
    },
    closed,
  ),
)

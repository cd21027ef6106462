import type { Movement as Wire } from '@farthing/sdk'
import { toShown } from '../chains/families.ts'
import type { Line } from './lines.ts'

export function toWire(line: Line): Wire {
  const { network, asset, wallet, place, reverses, actorType, actorId, details, rateTime, valueRateTime } =
    line
  const shown = (address: string | null) => address && toShown(network, address)
  return {
    id: line.id,
    number: Number.parseInt(line.number, 10),
    type: line.type,
    happenedAt: at(line.happenedAt),
    bookedAt: at(line.bookedAt),
    network,
    asset: toShown(network, asset),
    amount: line.amount,
    wallet: shown(wallet),
    transaction: line.transaction,
    logIndex: place,
    paymentId: line.paymentId,
    refundId: line.refundId,
    checkoutId: line.checkoutId,
    orderId: line.orderId,
    disposition: line.disposition,
    priceAmount: line.priceAmount,
    priceCurrency: line.priceCurrency,
    rate: line.rate,
    rateSource: line.rateSource,
    rateTime: rateTime === null ? null : at(rateTime),
    value: line.value,
    valueCurrency: line.valueCurrency,
    valueRate: line.valueRate,
    valueRateSource: line.valueRateSource,
    valueRateTime: valueRateTime === null ? null : at(valueRateTime),
    reverses: reverses === null ? null : Number.parseInt(reverses, 10),
    decidedBy: actorType !== null && actorId !== null ? { type: actorType, id: actorId } : null,
    ...(details && {
      details: { ...details, payer: shown(details.payer), recipient: shown(details.recipient) },
    }),
  }
}

function at(time: number): string {
  return new Date(time).toISOString()
}

import {
  Checkout,
  CheckoutPayment,
  CreateCheckout,
  Payment,
  PaymentHint,
  StoreCheckout,
} from './checkout-schemas.ts'
import { ApiKey, ApiKeySecret, CreateApiKey, RotateApiKey } from './key-schemas.ts'
import { CreateRefund, NameTransaction, PreparedRefund, PresentRefund, Refund } from './refund-schemas.ts'
import {
  Currency,
  FinalityRule,
  Network,
  ProblemDetails,
  ProveWallet,
  RegisterWallet,
  Store,
  UpdateStore,
  UpdateWallet,
  Wallet,
  WalletChallenge,
} from './schemas.ts'
import { TermsSchema } from './terms-schemas.ts'

/** Schemas that the OpenAPI document lists by name. */
export const components = {
  Checkout,
  CheckoutPayment,
  PaymentHint,
  Payment,
  StoreCheckout,
  CreateCheckout,
  Refund,
  CreateRefund,
  PreparedRefund,
  PresentRefund,
  NameTransaction,
  FinalityRule,
  Store,
  UpdateStore,
  RegisterWallet,
  UpdateWallet,
  WalletChallenge,
  ProveWallet,
  Wallet,
  ApiKey,
  ApiKeySecret,
  CreateApiKey,
  RotateApiKey,
  Network,
  Currency,
  PaymentRequired: TermsSchema,
  ProblemDetails,
}

"""Bags of words and the LSTM."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from training.classic import (
    SMOOTHING,
    logistic_regression,
    naive_bayes,
    plain_words,
    read_tfidf,
    read_weights,
    tfidf_net,
    write_tfidf,
    write_weights,
)
from training.data import Reviews
from training.loop import Recipe
from training.recurrent import lstm, read_lstm, write_lstm
from training.vocabulary import train_vocabulary

GOOD = ["a good film", "good fun and a good cast", "i like it , good", "so good"]
BAD = ["a bad film", "bad and dull", "i hate it , bad bad", "so dull"]
REVIEWS = Reviews(tuple(GOOD * 20 + BAD * 20), (1,) * 80 + (0,) * 80)


def test_naive_bayes_is_sklearns_up_to_the_totals():
    model = naive_bayes(REVIEWS)
    counts = CountVectorizer(vocabulary=model.words, analyzer=plain_words).transform(REVIEWS.texts)
    theirs = MultinomialNB(alpha=SMOOTHING).fit(counts, REVIEWS.labels)
    ratio = theirs.feature_log_prob_[1] - theirs.feature_log_prob_[0]
    offset = ratio - model.weights  # the logarithm of the ratio of totals, the same for all words
    np.testing.assert_allclose(offset, offset[0], atol=1e-12)


def test_naive_bayes_adds_up():
    model = naive_bayes(REVIEWS)

    def log_odds(text):
        negative, positive = model([text])[0]
        return np.log(positive / negative)

    assert log_odds("good film") == pytest.approx(log_odds("good") + log_odds("film"))
    assert log_odds("good") == pytest.approx(np.log((100 + 40) / (0 + 40)))


@pytest.mark.parametrize("train", [naive_bayes, logistic_regression])
def test_word_weights_tell_good_from_bad_and_read_back(train, tmp_path):
    model = train(REVIEWS)
    write_weights(model, tmp_path)
    probabilities = read_weights(tmp_path)(["good", "bad"])
    np.testing.assert_allclose(probabilities, model(["good", "bad"]))
    assert probabilities[0, 1] > 0.5 > probabilities[1, 1]


def test_tfidf_net_tells_good_from_bad_and_reads_back(tmp_path):
    model = tfidf_net(REVIEWS, n_words=20, n_epochs=60, seed=0)
    write_tfidf(model, tmp_path)
    probabilities = read_tfidf(tmp_path)(["good film", "bad film"])
    np.testing.assert_allclose(probabilities, model(["good film", "bad film"]))
    assert probabilities[0, 1] > 0.5 > probabilities[1, 1]


def test_lstm_tells_good_from_bad_reads_back_and_ignores_padding(tmp_path):
    tokenizer = train_vocabulary(REVIEWS.texts, 60)
    model = lstm(REVIEWS, tokenizer, Recipe(3, 5e-3, n_texts=16))
    write_lstm(model, tmp_path)
    texts = ["good film", "bad film and so on and on"]
    probabilities = read_lstm(tmp_path)(texts)
    np.testing.assert_allclose(probabilities, model(texts), atol=1e-6)
    np.testing.assert_allclose(model(texts[:1])[0], probabilities[0], atol=1e-6)
    assert probabilities[0, 1] > 0.5 > probabilities[1, 1]

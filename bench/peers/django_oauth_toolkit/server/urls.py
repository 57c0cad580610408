"""The URLs of the benchmark's project."""

from django.urls import include, path
from oauth2_provider import urls

urlpatterns = [path("o/", include(urls))]
